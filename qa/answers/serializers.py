"""An answer as JSON: one shape for REST, its event stream and the command line."""

from functools import cache
from typing import Any, Literal

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.people import AnyUser
from accounts.rest import optional_text, username_field
from qa.answers.models import Answer, fetch_evidence
from qa.answers.view import ShownPiece, view
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.values import Calibration

_GATES = [gate.value for gate in Gate]
_SAID_UNTIL_DECIDED = {
    Answer.Outcome.PENDING: "This question is still being decided.",
    Answer.Outcome.FAILED: "This question could not be decided. Please ask again.",
}


@cache
def _shared(
    kind: type[serializers.Serializer[Answer]],
) -> serializers.Serializer[Answer]:
    """Return one shared serializer: building its fields takes longer than its use."""
    return kind()


def as_json(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = _shared(AnswerSerializer).to_representation(answer)
    return shown


def as_seen_by(viewer: AnyUser, answer: Answer) -> dict[str, Any]:
    """Return a just-decided answer as JSON, fetching its evidence if needed."""
    if not hasattr(answer, "pieces"):
        fetch_evidence(answer, viewer)
    return as_json(answer)


class PieceSerializer(serializers.Serializer[ShownPiece]):
    """One entry as it was when it was measured."""

    n = serializers.IntegerField(
        source="number", read_only=True, help_text="Its number on the page, from 1."
    )
    entry = serializers.IntegerField(source="row.entry_id")
    revision = serializers.IntegerField(source="row.revision_id")
    quote = serializers.CharField(
        allow_blank=True, help_text="Words of the entry that the answer rests on."
    )
    text = serializers.CharField(default="", allow_blank=True)
    question = serializers.CharField(default="", allow_blank=True)
    document = optional_text("document.title")
    section = optional_text("section.heading")
    distance = serializers.FloatField(
        source="row.distance", help_text="Euclidean, of unit vectors, 0 to 2."
    )
    confidence = serializers.FloatField(
        source="row.confidence", help_text="In (0, 1]; 1 when verified."
    )
    ratio = serializers.FloatField(
        source="row.ratio",
        read_only=True,
        help_text="distance / confidence, which hard refusal compares with alpha.",
    )
    verified = serializers.BooleanField(source="row.is_verified", read_only=True)
    machine_written = serializers.BooleanField(
        source="row.is_machine_written",
        read_only=True,
        help_text="A language model wrote it and nobody had reviewed it.",
    )
    verified_at = serializers.DateTimeField(
        source="row.verified_at", read_only=True, allow_null=True
    )
    valid_until = serializers.DateTimeField(
        source="row.revision.valid_until", default=None, allow_null=True
    )
    withheld = serializers.BooleanField(
        source="row.is_withheld",
        help_text="You are not in its audience; its words and its source are left out.",
    )


class EvidenceSerializer(PieceSerializer):
    """A piece that the language model read."""

    cited = serializers.BooleanField(
        source="row.is_cited", read_only=True, help_text="The answer rests on it."
    )


class SignalSerializer(serializers.Serializer[dict[str, Any]]):
    """A measured value and its threshold; `passed` is null if it was only recorded."""

    gate = serializers.ChoiceField(_GATES)
    name = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    threshold = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField(allow_null=True)


class EffectiveSerializer(serializers.Serializer[Answer]):
    """The thresholds and models that decided it."""

    policy = serializers.CharField(source="policy.name")
    policy_version = serializers.IntegerField(source="policy.version")
    alpha = serializers.FloatField(source="policy.alpha")
    horizon = serializers.FloatField(source="policy.horizon")
    top_k = serializers.IntegerField(source="policy.top_k")
    verbatim_distance = serializers.FloatField(source="policy.verbatim_distance")
    verification = serializers.BooleanField(source="policy.verification")
    min_entry_answer = serializers.FloatField(source="policy.min_entry_answer")
    min_answerability = serializers.FloatField(source="policy.min_answerability")
    unverified_floor = serializers.FloatField(source="policy.unverified_floor")
    min_sentence_support = serializers.FloatField(source="policy.min_sentence_support")
    min_verdict = serializers.FloatField(source="policy.min_verdict")
    abstention = serializers.BooleanField(source="policy.abstention")
    min_confidence = serializers.FloatField(source="policy.min_confidence")
    min_early_confidence = serializers.FloatField(source="policy.min_early_confidence")
    min_joint_confidence = serializers.FloatField(source="policy.min_joint_confidence")
    scope = serializers.CharField(source="policy.scope")
    retrieval_timing = serializers.CharField(source="policy.retrieval_timing")
    min_known = serializers.FloatField(source="policy.min_known")
    calibration = serializers.ChoiceField([each.value for each in Calibration])
    embedder = serializers.CharField(help_text="Fingerprint.")
    language_model = serializers.CharField(
        allow_blank=True, help_text='Fingerprint; "" where none was called.'
    )
    own_knowledge = serializers.CharField(
        source="boundary.fingerprint",
        default="",
        help_text="Fingerprint of what predicted whether the language model knows the "
        'answer itself; "" where nothing did.',
    )
    probes = serializers.CharField(
        allow_blank=True,
        help_text='Fingerprints, separated by spaces; "" where none was called.',
    )


class TokenConfidenceSerializer(serializers.Serializer[object]):
    """A part of the answer and a probe's confidence after it."""

    text = serializers.CharField(
        trim_whitespace=False,
        help_text="As the model wrote it; all joined are the text.",
    )
    confidence = serializers.FloatField(help_text="0 to 1.")


class ConfidenceSerializer(serializers.Serializer[object]):
    """Predictions of the active probes that the answer is right, each 0 to 1."""

    answer = serializers.FloatField(
        allow_null=True, help_text="By the model's activations while it wrote."
    )
    early = serializers.FloatField(
        allow_null=True, help_text="By question and evidence, before the first token."
    )
    joint = serializers.FloatField(
        allow_null=True, help_text="By all signals together."
    )
    tokens = TokenConfidenceSerializer(
        many=True,
        help_text="Along `short_answer`, or along `text` where that is empty; empty for "
        "a refusal.",
    )


class SideSerializer(serializers.Serializer[object]):
    """One of two entries that contradict each other."""

    entry = serializers.IntegerField()
    quote = serializers.CharField(help_text="From the entry as it was then.")
    document = serializers.CharField(allow_blank=True)
    verified = serializers.BooleanField()
    withheld = serializers.BooleanField(
        help_text="You are not in its audience; the quote is left out."
    )


class DisagreementSerializer(serializers.Serializer[object]):
    """A contradiction that was unresolved when the question was asked."""

    conflict = serializers.IntegerField(help_text="Its id under /api/v1/conflicts.")
    sides = SideSerializer(many=True, help_text="Two.")


class AnswerSummarySerializer(serializers.Serializer[Answer]):
    """An answer in a list."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField(
        source="conversation_id", help_text="To send with a follow-up to it."
    )
    question = serializers.CharField(help_text="As it was asked and decided.")
    typed = serializers.CharField(
        source="typed_text",
        help_text="What was sent. It differs from `question` for a follow-up, which is "
        "made a standalone question, for a long message, and where words have synonyms.",
    )
    language = serializers.CharField(
        source="shown_language", help_text="Of the answer, or of the refusal's wording."
    )
    knowledge_base = serializers.CharField(
        source="knowledge_base.slug", help_text="Slug of the one that was asked."
    )
    asker = username_field("asker")
    service = serializers.CharField(
        help_text="The service account that asked on the asker's behalf; empty if none."
    )
    outcome = serializers.ChoiceField(Answer.Outcome.choices)
    answered = serializers.SerializerMethodField()
    gate = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField(
        help_text="Why it was refused, as far as the asker may know."
    )
    text = serializers.SerializerMethodField(
        help_text="Can always be displayed: the answer, or the refusal's wording."
    )
    unsourced = serializers.BooleanField(
        source="is_unsourced",
        help_text="The language model answered from its own knowledge, without a source. "
        "Only where the policy's scope is adaptive.",
    )
    withheld = serializers.BooleanField(
        source="is_withheld",
        help_text="It cites an entry that you may not see; `text` says so instead.",
    )
    vote = serializers.SerializerMethodField(help_text="Your own.")
    created_at = serializers.DateTimeField()
    as_of = serializers.DateTimeField(
        allow_null=True,
        help_text="The moment whose knowledge and policy decided it. Such an answer is "
        "not stored: its `id` cannot be looked up. null: decided as of now.",
    )

    def get_answered(self, answer: Answer) -> bool:
        return answer.outcome == Answer.Outcome.ANSWERED

    def get_gate(self, answer: Answer) -> Gate | None:
        return Gate(answer.gate) if answer.gate else None

    def get_reason(self, answer: Answer) -> Reason | None:
        return Reason(answer.shown_reason) if answer.shown_reason else None

    def get_text(self, answer: Answer) -> str:
        undecided = _SAID_UNTIL_DECIDED.get(Answer.Outcome(answer.outcome), "")
        return answer.shown_text or undecided

    def get_vote(self, answer: Answer) -> Literal["up", "down"] | None:
        is_up = getattr(answer, "own_vote", None)
        return None if is_up is None else "up" if is_up else "down"


class SegmentSerializer(serializers.Serializer[object]):
    """A sentence that was monitored while it was written."""

    text = serializers.CharField()
    sourced = serializers.BooleanField(
        source="is_sourced", help_text="Whether an entry supports it."
    )
    triggers = serializers.CharField(
        allow_blank=True, help_text="The uncertain words that triggered a search."
    )
    queries = serializers.ListField(
        child=serializers.CharField(), help_text="What was searched for."
    )


class AnswerSerializer(AnswerSummarySerializer):
    """An answer with its evidence and everything that decided it."""

    segments = SegmentSerializer(
        source="view.segments",
        many=True,
        read_only=True,
        help_text="Sentence by sentence, where the policy's retrieval timing is monitored.",
    )
    short_answer = serializers.CharField(
        source="view.short_answer",
        read_only=True,
        help_text='The words of `text` that answer the question; "" where the model does '
        "not mark them, or no sentence of an entry shown whole stands out.",
    )
    confidence = ConfidenceSerializer(
        source="view.confidence",
        allow_null=True,
        read_only=True,
        help_text="null where no probe measured anything.",
    )
    reasoning = serializers.CharField(source="view.reasoning", allow_blank=True)
    citations = PieceSerializer(
        source="view.citations",
        many=True,
        read_only=True,
        help_text="What the answer rests on; empty unless it is an answer.",
    )
    evidence = EvidenceSerializer(
        source="view.evidence",
        many=True,
        read_only=True,
        help_text="All that the language model read; or the entry shown word for word.",
    )
    near_misses = PieceSerializer(
        source="view.near_misses",
        many=True,
        read_only=True,
        help_text="Entries near a refused question that did not suffice to answer it; "
        "if the language model was called, they are in `evidence` too.",
    )
    meanings = serializers.SerializerMethodField(
        help_text="Ids of those `near_misses` between which a refused question is "
        "ambiguous: choose one by asking again, or by a vote with "
        "`answering_entry`."
    )
    disagreements = DisagreementSerializer(
        source="view.disagreements",
        many=True,
        read_only=True,
        help_text="Entries that contradict what the answer rests on, with both quotes; "
        "an unverified entry does not hold back a verified answer.",
    )
    not_compared = serializers.IntegerField(
        source="view.not_compared",
        read_only=True,
        help_text="How many of the answer's entries, and of the others that were found, "
        "the conflict check had not compared since they changed: a contradiction between "
        "them would not be known yet.",
    )
    signals = SignalSerializer(many=True)
    effective = serializers.SerializerMethodField(help_text="null until it is decided.")
    milliseconds = serializers.DictField(
        child=serializers.FloatField(), help_text="By stage."
    )

    def to_representation(self, instance: Answer) -> dict[str, Any]:
        instance.view = view(instance)
        shown: dict[str, Any] = super().to_representation(instance)
        return shown

    def get_meanings(self, answer: Answer) -> list[int]:
        ids = (piece.row.entry_id for piece in answer.view.meanings)
        return [pk for pk in ids if pk is not None]

    @extend_schema_field(EffectiveSerializer(allow_null=True))
    def get_effective(self, answer: Answer) -> dict[str, Any] | None:
        if answer.policy is None or not answer.calibration:
            return None
        return _shared(EffectiveSerializer).to_representation(answer)
