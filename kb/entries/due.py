"""Why an entry needs a person, and its place in the queue."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

EXPIRY_NOTICE = timedelta(days=30)
"""How long before its expiry an entry is due; as in kb/migrations/rules.sql."""

_PLACE_LIMIT = 100


class Reason(StrEnum):
    EXPIRED = "expired"
    FLAGGED = "flagged"
    VOTED_DOWN = "voted_down"
    OVERDUE = "overdue"
    EXPIRING = "expiring"
    NEEDS_REVIEW = "needs_review"
    IN_REVIEW = "in_review"


LABELS = {
    Reason.EXPIRED: "expired",
    Reason.FLAGGED: "flagged",
    Reason.VOTED_DOWN: "voted down",
    Reason.OVERDUE: "review overdue",
    Reason.EXPIRING: "expires soon",
    Reason.NEEDS_REVIEW: "needs review",
    Reason.IN_REVIEW: "in review",
}
REASON_CHOICES = [(reason.value, label) for reason, label in LABELS.items()]


@dataclass(frozen=True, slots=True)
class Due:
    """A reason and when it began; for an expiry, the moment it expires."""

    reason: Reason
    since: datetime

    @property
    def label(self) -> str:
        return LABELS[self.reason]


@dataclass(frozen=True, slots=True)
class Place:
    """An entry's position in the queue: most used first, then longest due."""

    uses: int
    due_at: datetime
    entry_id: int

    def token(self) -> str:
        plain = f"{self.uses} {self.due_at.isoformat()} {self.entry_id}"
        return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    @classmethod
    def read(cls, token: str) -> Self:
        if len(token) > _PLACE_LIMIT:
            raise ValueError(f"{token[:20]!r}... is too long for a place in the queue.")
        try:
            padded = token + "=" * (-len(token) % 4)
            plain = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
            uses, due_at, entry_id = plain.split(" ")
            place = cls(int(uses), datetime.fromisoformat(due_at), int(entry_id))
        except (binascii.Error, UnicodeError, ValueError) as error:
            raise ValueError(f"{token[:20]!r} is not a place in the queue.") from error
        numbers_fit = 0 <= place.uses < 2**31 and 0 <= place.entry_id < 2**63
        if not numbers_fit or place.due_at.tzinfo is None:
            raise ValueError(f"{token[:20]!r} is not a place in the queue.")
        return place
