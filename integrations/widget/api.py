"""The endpoints of the widget's script: a token, a question, a vote, a choice.

They are not a public interface: script and endpoints change together. Cookies are
ignored, and the `Origin` of every request is checked here, whatever the browser does
with the CORS headers.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.cache import patch_vary_headers
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import rest
from accounts.roles import IsAgent, caller
from accounts.throttles import ScopedThrottle, client_address, count
from integrations.widget.models import Widget
from integrations.widget.tokens import (
    TOKEN_SECONDS,
    check_origin,
    issue_token,
    user_of_token,
)
from kb.text.layout import Kind
from qa.answers import asking
from qa.answers.layout import Block, laid_out
from qa.answers.models import Answer
from qa.answers.questions import find_knowledge_base
from qa.answers.serializers import as_seen_by
from qa.policies.wording import words_around
from qa.votes.models import Vote
from qa.votes.services import choose_entry, set_thumb

_PIECE = (
    "n", "question", "text", "quote", "document", "section", "verified", "valid_until",
)  # fmt: skip
_LABELS = (
    "not_answered", "asks_back", "name_it", "related_only", "more", "verified",
    "not_verified", "valid_until", "entry", "sources_disagree", "was_it_right", "yes",
    "no", "thanks", "taken_back", "this_is_meant", "choice_kept", "choice_removed",
)  # fmt: skip
_SIDE = ("quote", "document", "verified")
_CORS_SECONDS = 600


class WidgetThrottle(ScopedThrottle):
    """Counts a request for the reader's address, for the widget, and as any request.

    An address that asks too often uses up nothing of the other readers' share.
    """

    def allow_request(self, request: Request, view: APIView) -> bool:
        # Unknown names are not counted: each would fill the counters' cache with an
        # entry.
        if isinstance(view, WidgetView) and view.widget:
            name = view.widget.name
            callers = {
                "widget_address": f"{name} {client_address(request)}",
                "widget": name,
            }
            for scope, who in callers.items():
                self._count = count(scope, who)
                if self.wait() is not None:
                    return False
        return super().allow_request(request, view)


class TokenRequestSerializer(rest.StrictSerializer):
    """What a page sends to get a token."""

    claim = rest.StrictCharField(default="", allow_blank=True, max_length=2_000)


class WidgetQuestionSerializer(rest.StrictSerializer):
    """A reader's question."""

    question = rest.StrictCharField(max_length=settings.QUESTION_MAX_CHARACTERS)


class WidgetVoteSerializer(rest.StrictSerializer):
    """A reader's thumb; null takes it back."""

    rating = serializers.ChoiceField(["up", "down"], allow_null=True)


class WidgetChoiceSerializer(rest.StrictSerializer):
    """The entry that a reader means; null takes it back."""

    entry = rest.StrictIntegerField(min_value=1, max_value=2**63 - 1, allow_null=True)


class WidgetAuthentication(BaseAuthentication):
    """Authenticates by a widget's token, sent from the origin that it was made for."""

    def authenticate(self, request: Request) -> tuple[User, Widget] | None:
        view: WidgetView = request.parser_context["view"]
        words = get_authorization_header(request).split()
        if len(words) != 2 or words[0].lower() != b"bearer":
            return None
        token = words[1].decode("utf-8", "replace")
        widget = check_origin(view.widget, view.origin)
        return user_of_token(widget, view.origin, token), widget

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class WidgetView(rest.KnownQueryView):
    """An endpoint of a widget's script, only for pages of the widget's origins."""

    authentication_classes: Any = [WidgetAuthentication]
    permission_classes: Any = [IsAgent]
    throttle_classes = [WidgetThrottle]
    throttle_scope = "user"

    @cached_property
    def widget(self) -> Widget | None:
        return Widget.objects.serving().filter(name=self.kwargs["slug"]).first()

    @cached_property
    def origin(self) -> str:
        return str(self.request.headers.get("Origin", ""))

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        if request.method != "OPTIONS":  # a browser's preflight request
            super().initial(request, *args, **kwargs)

    @extend_schema(exclude=True)
    def options(self, request: Any, *args: object, **kwargs: object) -> Response:
        """Tell a browser what a page may send (preflight)."""
        return Response(status=204)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(final, ["Origin"])
        if self.widget and self.origin in self.widget.origins:
            final["Access-Control-Allow-Origin"] = self.origin
            if request.method == "OPTIONS":
                final["Access-Control-Allow-Methods"] = ", ".join(self.allowed_methods)
                final["Access-Control-Allow-Headers"] = "authorization, content-type"
                final["Access-Control-Max-Age"] = str(_CORS_SECONDS)
        return final


class TokenView(WidgetView):
    authentication_classes: Any = []
    permission_classes: Any = [AllowAny]

    @extend_schema(exclude=True)
    def post(self, request: Request, slug: str) -> Response:
        """Issue a token for a page and, if a claim names one, its reader."""
        claim: str = rest.validated(TokenRequestSerializer, request.data)["claim"]
        widget = check_origin(self.widget, self.origin)
        token = issue_token(widget, self.origin, claim)
        return Response({"token": token, "expires_in": TOKEN_SECONDS})


class AskView(WidgetView):
    throttle_scope = "ask"

    @extend_schema(exclude=True)
    def post(self, request: Request, slug: str) -> Response:
        """Answer a reader's question, returning only what a reader needs."""
        question: str = rest.validated(WidgetQuestionSerializer, request.data)[
            "question"
        ]
        widget, asker = check_origin(self.widget, self.origin), caller(request)
        base = find_knowledge_base(widget.knowledge_base.slug, asker=asker)
        answer = asking.ask(
            question, asker=asker, knowledge_base=base, channel=Answer.Channel.API
        )
        shown = as_seen_by(asker, answer)
        return Response(for_reader(shown, entry_language=base.language))


class VoteView(WidgetView):
    @extend_schema(exclude=True)
    def put(self, request: Request, slug: str, answer_id: UUID) -> Response:
        """Set the reader's thumb on their own answer, or take it back."""
        rating = rest.validated(WidgetVoteSerializer, request.data)["rating"]
        is_up = None if rating is None else rating == "up"
        kept = set_thumb(answer_id, user=caller(request), is_up=is_up)
        return Response(_kept(kept))


class ChoiceView(WidgetView):
    @extend_schema(exclude=True)
    def put(self, request: Request, slug: str, answer_id: UUID) -> Response:
        """Store which entry a reader's refused question means, or take it back."""
        entry = rest.validated(WidgetChoiceSerializer, request.data)["entry"]
        kept = choose_entry(answer_id, user=caller(request), entry_id=entry)
        return Response(_kept(kept))


def _kept(vote: Vote | None) -> dict[str, str | int | None]:
    """Return a reader's vote as the page shows it: the thumb and the chosen entry."""
    if vote is None:
        return {"rating": None, "entry": None}
    return {"rating": "up" if vote.is_up else "down", "entry": vote.answering_entry_id}


def for_reader(shown: dict[str, Any], *, entry_language: str) -> dict[str, Any]:
    """Return what a page shows of an answer, without thresholds, signals or models."""
    names = ("id", "question", "language", "answered", "unsourced", "reason")
    reason, meant = shown["reason"], shown["meanings"]
    words = words_around(language=shown["language"], is_refused=not shown["answered"])
    near = shown["near_misses"]
    text = words.for_reader(reason, shown["text"])
    pieces = {
        "citations": shown["citations"],
        "meanings": [piece for piece in near if piece["entry"] in meant],
        "near_misses": [piece for piece in near if piece["entry"] not in meant],
    }
    return {
        **{name: shown[name] for name in names},
        "text": text,
        "blocks": _blocks(laid_out(text)),
        "title": words.reasons[reason].title if reason else "",
        "entry_language": entry_language,
        "words": {"language": words.language}
        | {name: words.labels[name] for name in _LABELS},
        **{
            kind: [
                {name: piece[name] for name in _PIECE}
                | ({"entry": piece["entry"]} if kind == "meanings" else {})
                | {"blocks": _blocks(laid_out(piece["text"] or piece["quote"]))}
                for piece in found
                if not piece["withheld"]
            ]
            for kind, found in pieces.items()
        },
        "disagreements": [
            [
                {name: side[name] for name in _SIDE}
                for side in each["sides"]
                if not side["withheld"]
            ]
            for each in shown["disagreements"]
        ],
    }


def _blocks(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Return the paragraphs, lists and tables of a text for the script to render."""
    return [
        {
            "kind": block.kind,
            "first": block.first,
            "rows": [
                ["".join(piece.text for piece in cell).strip() for cell in row]
                for row in block.rows
            ],
        }
        | ({"has_headings": block.has_headings} if block.kind is Kind.TABLE else {})
        | ({"below": [*map(_blocks, block.below)]} if any(block.below) else {})
        for block in blocks
    ]
