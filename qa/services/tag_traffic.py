"""Which tags are asked about, and which of these nobody is the expert of."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from kb.models import Tag
from qa.models import Answer

RECENT = timedelta(days=30)
COUNTED = 1_000
"""Answers of a tag that are counted at most: enough to see that there are many."""


@dataclass(frozen=True, slots=True)
class TagTraffic:
    """How often a tag was asked about; `answers` is at most `COUNTED`."""

    tag: Tag
    answers: int


def unattended_tags() -> list[TagTraffic]:
    """Return tags without an expert that were asked about lately, the busiest first.

    One query more than there are such tags, each of which reads an index.
    """
    since = timezone.now() - RECENT
    found = [
        TagTraffic(tag, traffic_of(tag, since=since))
        for tag in Tag.objects.without_expert()
    ]
    busy = [each for each in found if each.answers]
    return sorted(busy, key=lambda each: (-each.answers, each.tag.slug))


def traffic_of(tag: Tag, *, since: datetime) -> int:
    """Count what was asked about a tag since then, up to `COUNTED`."""
    rows = Answer.objects.live().filter(**{tag.facet: tag, "created_at__gte": since})
    return rows.order_by()[:COUNTED].count()
