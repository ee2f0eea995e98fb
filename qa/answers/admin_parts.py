"""An answer's gates and evidence as tables of the admin."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_parts import table
from qa.answers.models import Answer, AnswerEvidence

_SHOWN = 120
_PASSED = {True: "met", False: "not met", None: "recorded"}


def link_to_entry(entry_id: int | None, said: str = "") -> SafeString:
    """Return an entry's words, or its number, with the way to its page."""
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
        reverse("admin:kb_entry_change", args=[entry_id]),
        said or f"entry {entry_id}",
    )


def gates_table(answer: Answer) -> SafeString:
    """Return every measured number beside its threshold, in order."""
    rows = (
        (
            signal["gate"].replace("_", " "),
            signal["name"].replace("_", " "),
            rounded(signal["value"]),
            rounded(signal["threshold"]),
            _PASSED[signal["passed"]],
        )
        for signal in answer.signals
    )
    return table(("gate", "measured", "value", "threshold", "result"), rows)


def evidence_table(answer: Answer) -> SafeString:
    """Return the evidence and near misses as they were measured, as far as they are seen.

    Args:
        answer: From `Answer.objects.with_evidence` or `fetch_evidence`.
    """
    rows = (
        (
            piece.get_role_display(),
            *_said(piece),
            rounded(piece.distance),
            rounded(piece.confidence),
            rounded(piece.distance / piece.confidence),
        )
        for piece in answer.pieces
    )
    heads = ("role", "entry", "document", "quote", "distance", "confidence", "ratio")
    return table(heads, rows)


def shortened(question: str) -> str:
    return question if len(question) <= _SHOWN else f"{question[: _SHOWN - 1]}…"


def link_to(answer: Answer) -> SafeString:
    """Return what was asked, with the way to the answer's own page."""
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
        reverse("admin:qa_answer_change", args=[answer.pk]),
        answer.question,
    )


def _said(piece: AnswerEvidence) -> tuple[str, str, str]:
    """Return entry, document and quote, as far as the user may read them."""
    if piece.is_withheld or piece.revision is None:
        return f"entry {piece.entry_id}, withheld from you", "", ""
    link = link_to_entry(piece.entry_id, piece.revision.text[:200])
    document = piece.entry.document if piece.entry else None
    return link, document.title if document else "", piece.quote


def rounded(value: float | None) -> str:
    """Return a number short; nothing for none."""
    return "" if value is None else f"{value:.3g}"
