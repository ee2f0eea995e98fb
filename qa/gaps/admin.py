from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from accounts.admin_parts import change_each, confirmed, table
from accounts.base_admin import (
    OPEN_OR_ALL,
    Fieldsets,
    OpenFirstAdmin,
    action,
    badge,
)
from accounts.exceptions import NescioError
from accounts.people import person_name
from accounts.queue_admin import QueueFormAdmin
from accounts.roles import caller
from accounts.undo import offer_undo
from kb.entries.models import Entry
from kb.synonyms.services import unused_words
from qa.answers.admin import link_to, link_to_entry, rounded, shortened
from qa.gaps.models import TREND_PERIOD, Gap, impact
from qa.gaps.services import (
    SHOWN,
    UNDO,
    Tried,
    assign,
    count_reasons,
    fetch_shown,
    noted_change,
    reopen_undoably,
)
from qa.pipeline.gates import Reason
from qa.policies.wording import REASONS

from .expert_form import is_curator_of, link_to_page
from .forms import WAITS, GapForm
from .near_entries import chosen_entries
from .regrouping import MAX_MERGED, UNDO_MERGING, merge_undoably, to_merge

_STATES = {
    "open": "warning", "drafted": "info", "filled": "success", "dismissed": "info",
}  # fmt: skip


def _page_of(key: object) -> str:
    return reverse("admin:qa_gap_change", args=[key])


@admin.register(Gap)
class GapAdmin(OpenFirstAdmin, QueueFormAdmin):
    """Gaps: unanswered questions by impact, with ways to fill or dismiss each."""

    form = GapForm
    assignee: ClassVar = "owner"
    when_empty = (
        "Refused questions are gathered here every ten minutes, similar ones as one."
    )
    shown_state = badge("state", _STATES)
    list_display: ClassVar = [
        "shown_question", "shown_state", "impact_now", "times", "trend", "knowledge_base",
        "last_seen", "owner",
    ]  # fmt: skip
    list_filter: ClassVar = [OPEN_OR_ALL, "knowledge_base", "owner", "last_seen"]
    list_select_related = ["owner", "knowledge_base"]
    search_fields = ["question"]
    ordering: ClassVar = ["-impact_score", "-pk"]
    actions: ClassVar = [*QueueFormAdmin.actions, "reopen", "merge_chosen"]
    actions_detail: ClassVar = ["reopen_this"]

    def assign_to(self, user: User | None, key: int, *, by: User) -> Gap:
        return assign(key, by=by, owner=user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gap]:
        return super().get_queryset(request).with_trend(timezone.now()).defer("vector")  # type: ignore[attr-defined, no-any-return]  # a GapQuerySet

    def get_fieldsets(self, request: HttpRequest, obj: Gap | None = None) -> Fieldsets:
        facts = ["question", "state", "times", "trend", "impact_now", "reasons"]
        facts += ["owner", "filled_by"]
        if obj is not None and obj.state == Gap.State.DISMISSED:
            facts.append("reason")
        sections: Fieldsets = [(None, {"fields": facts})]
        if obj is not None and obj.can_be_filled:
            names = ["how", "asked", "said", "entry", "words", "audience", "moved"]
            names += ["verify"] if is_curator_of(request.user, obj) else []
            sections.append(("Fill it", {"fields": names}))
        elif obj is not None and obj.is_open:
            what = {"fields": ["how", "said"], "description": WAITS}
            sections.append(("Dismiss it", what))
        if obj is not None and obj.unused_words:
            facts.append("unused")
        return [
            *sections,
            ("Nearest entries", {"fields": ["nearest"]}),
            (f"Its newest questions, up to {SHOWN}", {"fields": ["before_and_after"]}),
        ]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Gap | None:
        found: Gap | None = super().get_object(request, object_id, from_field)
        if found is not None:
            fetch_shown(found, caller(request))
            found.refusal_reasons = count_reasons(found, caller(request))
            found.chosen = chosen_entries(found, caller(request))
            if is_curator_of(request.user, found):
                found.unused_words = unused_words(found.question, found.knowledge_base)
        return found

    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        before = copy(obj)
        super().save_model(request, obj, form, change)
        if obj.state == Gap.State.DISMISSED:
            offer_undo(
                request,
                f"Dismissed: {obj}",
                kind=UNDO,
                before={"rows": [noted_change(before, obj)]},
                back=_page_of(obj.pk),
            )

    def outcome(self, row: Gap) -> str:
        if row.entry is None or row.state == Gap.State.DISMISSED:
            return ""
        if row.entry.state == Entry.State.VERIFIED:
            said = "The question is asked again for all who asked it, with {} to answer it."
        else:
            said = (
                "The answer is kept as {}. Once a curator has verified it, the question is "
                "asked again for all who asked it."
            )
        return format_html(said, link_to_page(row.entry_id))

    @admin.action(description="Reopen", permissions=["change"])
    def reopen(self, request: HttpRequest, chosen: QuerySet[Gap]) -> None:
        user = caller(request)

        def again(key: int) -> dict[str, Any]:
            return reopen_undoably(key, by=user)[1]

        change_each(self, request, chosen, again, "reopened", undo=UNDO)

    def has_reopen_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        gap = super().get_object(request, object_id) if object_id else None
        is_closed = gap is not None and gap.state != Gap.State.OPEN
        return is_closed and self.has_change_permission(request)

    @action(description="Reopen", icon="undo", permissions=["reopen"])
    @confirmed("Open this gap again?")
    def reopen_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        found, page = self.found(request, object_id), _page_of(object_id)
        try:
            gap, noted = reopen_undoably(found.pk, by=caller(request))
        except NescioError as refused:
            self.message_user(request, str(refused), messages.ERROR)
        else:
            said, before = f"“{gap}” is open again.", {"rows": [noted]}
            offer_undo(request, said, kind=UNDO, before=before, back=page)
        return redirect(page)

    @admin.action(description="Merge", permissions=["change"])
    def merge_chosen(
        self, request: HttpRequest, chosen: QuerySet[Gap]
    ) -> HttpResponse | None:
        """Show the gaps to be merged for confirmation, or merge them once confirmed."""
        user = caller(request)
        keys = list(chosen.values_list("pk", flat=True)[: MAX_MERGED + 1])
        try:
            kept, others = to_merge(keys, by=user)
            if "confirm" not in request.POST:
                return self._ask_to_merge(request, kept, others)
            kept, before = merge_undoably(keys, by=user)
        except NescioError as error:
            self.message_user(request, str(error), messages.ERROR)
            return None
        names = ", ".join(f"“{gap}”" for gap in others)
        self.log_change(request, kept, f"Merged with it: {names}.")
        said = (
            f"{len(others) + 1} gaps merged: “{kept}” has {kept.questions} questions."
        )
        if before is None:
            self.message_user(request, said, messages.SUCCESS)
        else:
            back = request.get_full_path()
            offer_undo(request, said, kind=UNDO_MERGING, before=before, back=back)
        return None

    def _ask_to_merge(
        self, request: HttpRequest, kept: Gap, others: list[Gap]
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"Merge {len(others) + 1} gaps",
            "kept": kept,
            "others": others,
            "back": request.get_full_path(),
        }
        return render(request, "admin/qa/gap/merge.html", context)

    @admin.display(description="question", ordering="question")
    def shown_question(self, gap: Gap) -> str:
        return shortened(gap.question)

    @admin.display(description="impact", ordering="impact_score")
    def impact_now(self, gap: Gap) -> str:
        return f"{impact(gap.impact_score, timezone.now()):.1f}"

    @admin.display(description="asked", ordering="questions")
    def times(self, gap: Gap) -> str:
        often = "once" if gap.questions == 1 else f"{gap.questions} times"
        noun = "person" if gap.askers == 1 else "people"
        return f"{often} by {gap.askers} {noun}"

    @admin.display(description=f"last {TREND_PERIOD.days} days")
    def trend(self, gap: Gap) -> str:
        sign = (
            "▲" if gap.recent > gap.before else "▼" if gap.recent < gap.before else "="
        )
        return f"{gap.recent} {sign} {gap.before} before"

    @admin.display(description="why")
    def reasons(self, gap: Gap) -> str:
        return ", ".join(
            f"{REASONS[Reason(why)].title if why in set(Reason) else why.replace('_', ' ')}"
            f" ({count})"
            for why, count in gap.refusal_reasons.most_common()
        )

    @admin.display(description="filled by")
    def filled_by(self, gap: Gap) -> str:
        if gap.entry is not None:
            return format_html(
                "{}, {}", link_to_entry(gap.entry_id), gap.entry.get_state_display()
            )
        return "a language model's proposals" if gap.proposing_job_id else "nothing yet"

    @admin.display(description="entries")
    def nearest(self, gap: Gap) -> SafeString:
        heads = ("entry", "question", "text", "state", "distance", "chosen by")
        return table(heads, _near_rows(gap))

    @admin.display(description="words that no entry uses")
    def unused(self, gap: Gap) -> SafeString:
        address = reverse("admin:kb_synonym_add")
        base = gap.knowledge_base_id
        links = format_html_join(
            ", ",
            '<a class="underline" href="{}?{}">{}</a>',
            (
                (address, urlencode([("knowledge_base", base), ("word", word)]), word)
                for word in gap.unused_words
            ),
        )
        return format_html(
            '{} <span class="text-font-subtle-light dark:text-font-subtle-dark">Does '
            "one mean the same as a word in your entries? Choose it, and say which."
            "</span>",
            links,
        )

    @admin.display(description="before and after")
    def before_and_after(self, gap: Gap) -> SafeString:
        heads = ("question", "asked by", "when", "why", "before", "after")
        return table(heads, map(_row, gap.tried))


def _near_rows(gap: Gap) -> Iterator[tuple[object, ...]]:
    """Yield the entries that people chose, then the nearest ones in meaning."""
    distances = {hit.entry_id: rounded(hit.distance) for hit in gap.nearest_hits}
    for entry, people in gap.chosen:
        yield (
            link_to_entry(entry.pk),
            entry.question,
            entry.text[:200],
            entry.get_state_display(),
            distances.pop(entry.pk, ""),
            ", ".join(people),
        )
    for hit in gap.nearest_hits:
        if hit.entry_id in distances:
            yield (
                link_to_entry(hit.entry_id),
                hit.question,
                hit.text[:200],
                "verified" if hit.is_verified else "not verified",
                distances[hit.entry_id],
                "",
            )


def _row(tried: Tried) -> tuple[object, ...]:
    before = tried.before
    return (
        link_to(before),
        person_name(before.asker),
        f"{before.created_at:%Y-%m-%d %H:%M}",
        tried.why,
        shortened(before.shown_text),
        _result(tried),
    )


def _result(tried: Tried) -> str:
    after = tried.after
    if tried.is_copy:
        return "the same question by the same person was asked again"
    if after is None:
        return "not asked again yet"
    if tried.is_better is None:
        return "being asked"
    said = "answered" if tried.is_better else "no better"
    if after.is_unsourced:
        said = f"{said}, without a source"
    return f"{said}: {shortened(after.shown_text)}"
