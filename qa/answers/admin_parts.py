import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import messages
from django.core.paginator import EmptyPage, PageNotAnInteger
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from accounts.exceptions import NescioError
from qa.answers.models import Answer, AnswerEvidence


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> SafeString:
    """Return a plain table, or "none"; what stands in the cells is escaped."""
    cell = '<td class="py-1 pr-6 align-top">{}</td>'
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", cell, ((each,) for each in row)),) for row in rows),
    )
    if not body:
        return SafeString("none")
    head = format_html_join(
        "", '<th class="py-1 pr-6 text-left">{}</th>', ((name,) for name in heads)
    )
    return format_html(
        '<div class="overflow-x-auto"><table class="tabular-nums w-full"><thead><tr>{}'
        "</tr></thead><tbody>{}</tbody></table></div>",
        head,
        body,
    )


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Rows that are looked at here and written elsewhere."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False


_COUNTED = 1_000


class EstimatingPaginator(InfinitePaginator):  # type: ignore[misc]  # unfold ships no types
    """Pages of a list that may hold a million rows, which nobody counts.

    Up to a thousand rows are counted; of more the planner's estimate is told. The page
    after the last one is empty and no error, for the last one is not known.
    """

    @cached_property
    def count(self) -> int:
        """The number of rows; of more than a thousand an estimate."""
        rows = self.object_list.order_by()
        counted: int = rows[: _COUNTED + 1].count()
        if counted <= _COUNTED:
            return counted
        plan = json.loads(rows.explain(format="json"))
        return max(counted, int(plan[0]["Plan"]["Plan Rows"]))

    def validate_number(self, number: Any) -> int:  # noqa: ANN401  # of an address
        """Return the number of a page.

        Raises:
            PageNotAnInteger: It is no number.
            EmptyPage: It is below 1.
        """
        try:
            page = int(number)
        except (TypeError, ValueError) as error:
            raise PageNotAnInteger(f"Page {number!r} is no number.") from error
        if page < 1:
            raise EmptyPage(f"Page {page} is below 1.")
        return page

    def page(self, number: Any) -> Any:  # noqa: ANN401  # unfold ships no types
        """Return a page; rows beyond the estimate are shown too."""
        page = self.validate_number(number)
        end = page * self.per_page
        return self._get_page(self.object_list[end - self.per_page : end], page, self)


def change_each(
    model_admin: ModelAdmin,
    request: HttpRequest,
    chosen: QuerySet[Any],
    change: Callable[[int], object],
    done: str,
) -> None:
    """Change the chosen rows one by one, and tell how many were and why others not.

    Args:
        done: What was done to them, such as "taken".
    """
    changed = 0
    for key in list(chosen.values_list("pk", flat=True)):
        try:
            change(key)
        except NescioError as error:
            model_admin.message_user(request, str(error), messages.ERROR)
        else:
            changed += 1
    if changed:
        model_admin.message_user(request, f"{changed} {done}.", messages.SUCCESS)


# An answer's gates and evidence as tables of the admin.


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
