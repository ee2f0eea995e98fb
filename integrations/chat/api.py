"""Endpoints that Slack and Teams call, authenticated by the chat's signature.

Off unless configured. Other programs ask over REST.
"""

import json
import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.acting import acting_for
from accounts.exceptions import NescioError
from accounts.rest import KnownQueryView
from accounts.roles import IsAgent, caller
from integrations.chat import slack, teams
from integrations.chat.asking import asker_of, chat_account, keep
from integrations.chat.background import KIND
from jobs.services import enqueue
from qa.answers.event_stream import decided_in_thread
from qa.answers.models import Answer
from qa.votes.services import vote

TEAMS_SECONDS = 4.0
"""Seconds to wait for an answer; Teams gives up after five."""
_HINT = "Ask me a question, such as: What does a replacement card cost?"


class SlackSignature(BaseAuthentication):
    """Authenticates a request signed by Slack as the chat's account."""

    def authenticate(self, request: Request) -> tuple[User, None]:
        if not settings.SLACK_SIGNING_SECRET:
            raise AuthenticationFailed(
                "Slack is not connected: set NESCIO_SLACK_SIGNING_SECRET."
            )
        body = request._request.body
        if not slack.is_signed(body, request.headers, now=time.time()):
            raise AuthenticationFailed(
                "The request was not signed by Slack within the last five minutes; "
                "check NESCIO_SLACK_SIGNING_SECRET and the clock."
            )
        return chat_account(settings.SLACK_ACCOUNT), None

    def authenticate_header(self, request: Request) -> str:
        return "Slack"


class TeamsSignature(BaseAuthentication):
    """Authenticates a request signed by Teams as the chat's account."""

    def authenticate(self, request: Request) -> tuple[User, None]:
        if not settings.TEAMS_SECRETS:
            raise AuthenticationFailed(
                "Teams is not connected: set NESCIO_TEAMS_SECRETS."
            )
        header = request.headers.get("Authorization", "")
        if not teams.is_signed(request._request.body, header):
            raise AuthenticationFailed(
                "The request was not signed by Teams; check NESCIO_TEAMS_SECRETS."
            )
        return chat_account(settings.TEAMS_ACCOUNT), None

    def authenticate_header(self, request: Request) -> str:
        return "HMAC"


class SlackView(KnownQueryView):
    authentication_classes = [SlackSignature]
    permission_classes = [IsAgent]
    throttle_scope = "ask"


class SlackEventsView(SlackView):
    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        """Receive an event: a mention in a channel, or a direct message to the app.

        A mention is answered from what the chat's account may see, a direct message
        from what its writer may see.
        """
        sent = _object(request.data)
        if sent.get("type") == "url_verification":
            return Response({"challenge": str(sent.get("challenge", ""))[:200]})
        event = _object(sent.get("event", {}))
        is_direct = event.get("type") == "message" and event.get("channel_type") == "im"
        is_of_person = not (event.keys() & {"bot_id", "subtype"}) and event.get("user")
        if is_of_person and (is_direct or event.get("type") == "app_mention"):
            place = {"channel": _text(event, "channel")}
            if not is_direct:
                is_reply = "thread_ts" in event
                place["thread_ts"] = _text(event, "thread_ts" if is_reply else "ts")
            key, account = _text(sent, "event_id"), caller(request)
            is_asked = _answer_later(
                _text(event, "text"),
                key=key,
                user=_text(event, "user"),
                place=place,
                is_public=not is_direct,
                account=account,
            )
            if not is_asked:
                said = {"say": _HINT, "place": place}
                once = f"{KIND} {slack.answer_id(key)}"
                enqueue(KIND, said, owner=account, idempotency_key=once)
        return Response()


class SlackCommandView(SlackView):
    parser_classes = [FormParser]

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        """Receive a slash command; only the user who typed it sees the answer."""
        sent = request.data
        place = {
            "response_url": slack.checked_response_url(_text(sent, "response_url"))
        }
        is_asked = _answer_later(
            _text(sent, "text"),
            key=_text(sent, "trigger_id"),
            user=_text(sent, "user_id"),
            place=place,
            is_public=False,
            account=caller(request),
        )
        said = "Searching the knowledge base…" if is_asked else _HINT
        return Response({"response_type": "ephemeral", "text": said})


class SlackActionView(SlackView):
    parser_classes = [FormParser]
    throttle_scope = "user"

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        """Receive a click on a vote button; only the user who asked can vote."""
        try:
            sent = _object(json.loads(_text(request.data, "payload")))
        except ValueError as error:
            raise ParseError(f"payload is not valid JSON: {error}.") from error
        actions = sent.get("actions")
        for action in map(_object, actions[:1] if isinstance(actions, list) else ()):
            if action.get("action_id") in ("vote_up", "vote_down"):
                url = slack.checked_response_url(str(sent.get("response_url", "")))
                said = _voted(action, str(_object(sent.get("user", {})).get("id", "")))
                enqueue(
                    KIND,
                    {"say": said, "place": {"response_url": url}},
                    owner=caller(request),
                )
        return Response()


class TeamsView(KnownQueryView):
    authentication_classes = [TeamsSignature]
    permission_classes = [IsAgent]
    throttle_scope = "ask"

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        """Answer a message that mentions the outgoing webhook, within five seconds."""
        began = time.monotonic()
        text = teams.question_in(str(_object(request.data).get("text", "")))
        try:
            answer = keep(
                text,
                asker=caller(request),
                knowledge_base=settings.TEAMS_KNOWLEDGE_BASE,
            )
        except NescioError as error:
            return Response(teams.text_message(str(error) if text else _HINT))
        for event in decided_in_thread(answer, heartbeat_seconds=0.25):
            if event is not None and event[0] == "end":
                return Response(teams.answer_card(event[1]))
            if event is not None and event[0] == "error":
                return Response(teams.text_message(event[1]["error"]["message"]))
            if time.monotonic() - began > TEAMS_SECONDS:
                break
        link = f"{settings.PUBLIC_URL}/answers/{answer.pk}"
        return Response(
            teams.text_message(
                f"This takes longer than Teams waits. The answer will be here: {link}"
            )
        )


def _answer_later(
    text: str,
    *,
    key: str,
    user: str,
    place: dict[str, str],
    is_public: bool,
    account: User,
) -> bool:
    """Enqueue a question to be answered once; return False if the text has none."""
    question, answer = slack.question_in(text), str(slack.answer_id(key))
    if not question:
        return False
    # Slack sends an event again if it believes it was lost.
    if not Answer.objects.filter(pk=answer).exists():
        enqueue(
            KIND,
            {
                "answer": answer,
                "text": question,
                "user": user,
                "public": is_public,
                "place": place,
            },
            owner=account,
            idempotency_key=f"{KIND} {answer}",
        )
    return True


def _voted(action: dict[str, Any], presser: str) -> str:
    """Record the vote of the user who asked and return the reply."""
    key, _, user = str(action.get("value", "")).partition(" ")
    if presser != user:
        return "Only the person who asked can vote."
    answer = Answer.objects.filter(pk=key).first()
    asker = asker_of(answer) if answer else None
    if answer is None or asker is None:
        return "This answer no longer exists."
    with acting_for(asker):
        try:
            vote(answer.pk, user=asker, is_up=action["action_id"] == "vote_up")
        except NescioError as error:
            return str(error)
    return "Thank you."


def _object(given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ParseError(f"The body holds {str(given)[:60]!r}; send a JSON object.")
    return given


def _text(sent: Any, name: str) -> str:
    value = sent.get(name)
    if not isinstance(value, str):
        raise ParseError(f"{name} is missing; this is not a request from Slack.")
    return value
