"""The contradictions between entries that were found for one question."""

from collections.abc import Mapping, Sequence
from typing import Any

from kb.conflicts.models import Conflict
from kb.text.words import sentence_spans
from kb.types import Contradiction


def contradictions_between(entry_ids: Sequence[int]) -> tuple[Contradiction, ...]:
    """Return the open contradictions of which both entries are among these.

    One indexed statement over a few ids that the caller may see.
    """
    rows = (
        Conflict.objects.open()
        .filter(
            kind=Conflict.Kind.CONTRADICTION, first__in=entry_ids, second__in=entry_ids
        )
        .order_by("-score", "pk")
        .values_list(
            "pk", "first_id", "second_id", "first__text", "second__text", "reasons"
        )
    )
    return tuple(
        Contradiction(
            conflict_id,
            (first, second),
            (
                find_quote(first_text, reasons, "first"),
                find_quote(second_text, reasons, "second"),
            ),
        )
        for conflict_id, first, second, first_text, second_text, reasons in rows
    )


def find_quote(text: str, reasons: Sequence[Mapping[str, Any]], side: str) -> str:
    """Return the sentence that clashes; all of a text where none is marked."""
    places = [reason[side] for reason in reasons if reason[side]]
    for sentence in sentence_spans(text, clauses=True):
        if places and sentence.start <= places[0]["start"] < sentence.end:
            return text[sentence.start : sentence.end].strip()
    return text
