"""OpenAI's chat completions: what is read of a request, and an answer in their form.

https://platform.openai.com/docs/api-reference/chat; every key that is not OpenAI's own
is below `nescio`.
"""

from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts import rest
from integrations.openai.chat_models import ChatModel, is_pinned
from qa.answers.api import TaggedQuestionSerializer
from qa.answers.models import Answer
from qa.answers.serializers import AnswerSerializer

MAX_MESSAGES = 1_000
_ROLES = ["system", "developer", "user", "assistant", "tool", "function"]
# They control sampling, what a provider stores, or optional tool calls (front ends
# offer tools with every question): nothing here depends on them.
_WITHOUT_EFFECT = (
    "frequency_penalty", "functions", "logit_bias", "max_completion_tokens", "max_tokens",
    "metadata", "parallel_tool_calls", "prediction", "presence_penalty",
    "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "safety_identifier",
    "seed", "service_tier", "stop", "store", "temperature", "tools", "top_p", "user",
    "verbosity",
)  # fmt: skip
# They change the response, so only values that request nothing extra are accepted.
_ONLY: dict[str, tuple[object, ...]] = {
    "audio": (None,),
    "function_call": (None, "none", "auto"),
    "logprobs": (None, False),
    "modalities": (None, ["text"]),
    "n": (None, 1),
    "response_format": (None, {"type": "text"}),
    "tool_choice": (None, "none", "auto"),
    "top_logprobs": (None, 0),
    "web_search_options": (None,),
}


class ContentField(serializers.Field[str, object, str, Any]):
    """A text, or parts of type `text` or `refusal`, which are joined."""

    def to_internal_value(self, data: object) -> str:
        if isinstance(data, str):
            return data
        if not isinstance(data, list):
            raise serializers.ValidationError("Give a text or a list of its parts.")
        return "\n".join(map(self._text, data))

    def _text(self, part: object) -> str:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text", part.get("refusal")) if isinstance(part, dict) else None
        if kind not in {"text", "refusal"} or not isinstance(text, str):
            raise serializers.ValidationError(
                f"A part of type {str(kind)[:40]!r} is not supported; send text."
            )
        return text


class MessageSerializer(serializers.Serializer[Any]):
    """One turn; other keys of OpenAI's are ignored."""

    role = serializers.ChoiceField(_ROLES)
    content = ContentField(required=False, allow_null=True)


_CONTENT = {
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
    "nullable": True,
}


@extend_schema_field(
    {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_MESSAGES,
        "items": {
            "type": "object",
            "required": ["role"],
            "properties": {
                "role": {"type": "string", "enum": _ROLES},
                "content": _CONTENT,
            },
        },
    }
)
class MessagesField(rest.StrictListField):
    child = MessageSerializer()


class OptionsSerializer(TaggedQuestionSerializer):
    """Options of a REST question besides its text."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        names = ("language", "tags", "rewrite", "as_of")
        return {name: fields[name] for name in names}


class StreamOptionsSerializer(rest.StrictSerializer):
    include_obfuscation = rest.StrictBooleanField(
        default=False, help_text="Has no effect."
    )
    include_usage = rest.StrictBooleanField(
        default=False, help_text="Adds a last chunk with `usage` and no choice."
    )


class ChatRequestSerializer(rest.StrictSerializer):
    """A conversation, whose last user turn is the question."""

    model = rest.StrictCharField(
        max_length=250,
        help_text="A knowledge base's slug, or another name of `GET /v1/models`.",
    )
    messages = MessagesField(
        min_length=1,
        max_length=MAX_MESSAGES,
        help_text="The last one of role `user` is asked; a follow-up is rewritten as a "
        "standalone question. Instructions (`system`) have no effect: knowledge and "
        "policy decide what is answered.",
    )
    stream = rest.StrictBooleanField(default=False, allow_null=True)
    stream_options = StreamOptionsSerializer(default=dict, allow_null=True)
    nescio = OptionsSerializer(default=dict)

    def get_fields(self) -> dict[str, Any]:
        names = {
            **dict.fromkeys(_WITHOUT_EFFECT, "Has no effect."),
            **dict.fromkeys(_ONLY, "Only values that request nothing extra."),
        }
        return super().get_fields() | {
            name: serializers.JSONField(required=False, allow_null=True, help_text=text)
            for name, text in names.items()
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wrong = {
            name: [f"{str(attrs[name])[:60]!r} is not supported; leave it out."]
            for name, allowed in _ONLY.items()
            if name in attrs and attrs[name] not in allowed
        }
        if wrong:
            raise serializers.ValidationError(wrong)
        turns = [each for each in attrs["messages"] if each["role"] == "user"]
        if not turns:
            raise serializers.ValidationError(
                {"messages": ["No message has the role user; add the question as one."]}
            )
        if attrs["nescio"].get("as_of"):
            self._check_moment(attrs, is_follow_up=len(turns) > 1)
        texts = [each.get("content") or "" for each in turns]
        return attrs | {"question": texts[-1], "earlier": texts[:-1]}

    def _check_moment(self, attrs: dict[str, Any], *, is_follow_up: bool) -> None:
        kept = attrs["stream"] or attrs["nescio"].get("tags") or is_follow_up
        if kept or is_pinned(attrs["model"]):
            raise serializers.ValidationError(
                {
                    "nescio": "A question as of a moment is not stored and is decided "
                    "by the policy of that time: send one question to the knowledge "
                    "base's slug, without stream and tags."
                }
            )


# Answers.


class UrlCitationSerializer(serializers.Serializer[Any]):
    """Position in the content, and a link; `nescio.citations` has the rest."""

    start_index = serializers.IntegerField()
    end_index = serializers.IntegerField()
    title = serializers.CharField()
    url = serializers.CharField()


class AnnotationSerializer(serializers.Serializer[Any]):
    type = serializers.ChoiceField(["url_citation"])
    url_citation = UrlCitationSerializer()


class AssistantMessageSerializer(serializers.Serializer[Any]):
    """The text, and whether it is an answer."""

    role = serializers.ChoiceField(["assistant"])
    content = serializers.CharField(help_text="Can always be shown.")
    refusal = serializers.CharField(
        allow_null=True,
        help_text="null for an answer, else the text of the refusal.",
    )
    annotations = AnnotationSerializer(many=True)


class ChoiceSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    message = AssistantMessageSerializer()
    finish_reason = serializers.ChoiceField(["stop"])
    logprobs = serializers.JSONField(allow_null=True)


class UsageSerializer(serializers.Serializer[Any]):
    """Tokens that the language model read and wrote; 0 if it was not called."""

    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()


class ChatSerializer(serializers.Serializer[Any]):
    """A chat completion, with the whole REST answer in `nescio`."""

    id = serializers.CharField()
    object = serializers.ChoiceField(["chat.completion"])
    created = serializers.IntegerField(help_text="Seconds since 1970.")
    model = serializers.CharField()
    choices = ChoiceSerializer(many=True, help_text="Always one.")
    usage = UsageSerializer()
    nescio = AnswerSerializer()


class ModelDetailsSerializer(serializers.Serializer[ChatModel]):
    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    title = serializers.CharField(source="knowledge_base.name")
    language = serializers.CharField(source="knowledge_base.language")
    policy = rest.optional_text("policy.name")
    policy_version = serializers.IntegerField(
        source="policy.version",
        default=None,
        allow_null=True,
        help_text="null before the first question.",
    )


class ModelSerializer(serializers.Serializer[ChatModel]):
    """A knowledge base, alone or with its active policy."""

    id = serializers.CharField(source="name")
    object = serializers.ChoiceField(["model"], default="model")
    created = serializers.SerializerMethodField()
    owned_by = serializers.CharField(default="nescio")
    nescio = ModelDetailsSerializer(source="*")

    def get_created(self, model: ChatModel) -> int:
        return int(model.knowledge_base.created_at.timestamp())


class ModelListSerializer(serializers.Serializer[Any]):
    object = serializers.ChoiceField(["list"])

    def get_fields(self) -> dict[str, Any]:
        # Added here because the attribute `data` is the library's own.
        return super().get_fields() | {"data": ModelSerializer(many=True)}


def head(answer: Answer, model: str, kind: str) -> dict[str, Any]:
    """Return the fields that a completion and its chunks share."""
    return {
        "id": f"chatcmpl-{answer.pk}",
        "object": kind,
        "created": int(answer.created_at.timestamp()),
        "model": model,
    }


def refusal_of(shown: dict[str, Any]) -> str | None:
    return None if shown["answered"] else shown["text"]


def annotations(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer's citations, with the position of those that the text quotes.

    An answer as of a moment has no page, so its citations link to today's entries.
    """
    page = None if shown["as_of"] else reverse("answer", args=[shown["id"]])
    return [
        {
            "type": "url_citation",
            "url_citation": {
                **_place(shown["text"], cited["quote"]),
                "title": cited["document"] or f"Entry {cited['entry']}",
                "url": settings.PUBLIC_URL
                + (page or reverse("entry", args=[cited["entry"]])),
            },
        }
        for cited in shown["citations"]
    ]


def _place(text: str, quote: str) -> dict[str, int]:
    start = text.find(quote) if quote else -1
    if start < 0:
        return {"start_index": 0, "end_index": len(text)}
    return {"start_index": start, "end_index": start + len(quote)}


def usage(answer: Answer) -> dict[str, int]:
    read = int(answer.generation.get("prompt_tokens", 0))
    written = int(answer.generation.get("answer_tokens", 0))
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
