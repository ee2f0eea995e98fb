"""Teams: its signature, the text typed there, and an answer as a card.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
https://adaptivecards.io/explorer/RichTextBlock.html
"""

import base64
import hashlib
import hmac
import html
import re
from typing import Any

from django.conf import settings
from django.utils.html import strip_tags

from integrations.chat.asking import Line, lines

_MENTION = re.compile(r"<at\b[^>]*>.*?</at>", re.DOTALL)
_CARD = "application/vnd.microsoft.card.adaptive"


def is_signed(body: bytes, header: str) -> bool:
    """Return whether Teams signed a body, by the token of a team's outgoing webhook."""
    found = False
    for secret in settings.TEAMS_SECRETS:
        digest = hmac.new(base64.b64decode(secret), body, hashlib.sha256).digest()
        expected = f"HMAC {base64.b64encode(digest).decode()}"
        found |= hmac.compare_digest(expected.encode(), header.encode())
    return found


def question_in(text: str) -> str:
    """Return the typed text without the mention and Teams' markup."""
    plain = html.unescape(strip_tags(_MENTION.sub(" ", text)))
    return " ".join(plain.split())


def text_message(text: str) -> dict[str, Any]:
    return {"type": "message", "text": html.escape(text)}


def answer_card(shown: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as a message with a card."""
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [_part(line) for line in lines(shown)],
    }
    attached = {"contentType": _CARD, "content": card}
    return {"type": "message", "attachments": [attached]}


def _part(line: Line) -> dict[str, Any]:
    """Return a part with literal text; a TextBlock would interpret Markdown."""
    looks: dict[str, object] = {"weight": "Bolder"} if line.is_head else {}
    if line.is_small:
        looks = {"isSubtle": True, "size": "Small"}
    run = {"type": "TextRun", "text": line.text, **looks}
    return {"type": "RichTextBlock", "inlines": [run]}
