from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display

from accounts.admin_parts import change_each, table
from accounts.roles import Role, caller, has_role
from qa.answers.admin import link_to, link_to_entry, rounded, shortened
from qa.answers.models import Answer
from qa.answers.wording import REASONS
from qa.gaps.models import TREND_PERIOD, Gap, GapQuerySet, Tried
from qa.gaps.reading import SHOWN, fetch_shown, impact, reasons_of
from qa.gaps.services import assign, reopen
from qa.pipeline.gates import Reason

from .forms import GapForm

_STATES = {
    "open": "warning", "drafted": "info", "filled": "success", "dismissed": "info",
}  # fmt: skip


@admin.register(Gap)
class GapAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """What is asked and not known, the most missed first, and what to do about it."""

    form = GapForm
    list_display: ClassVar = [
        "shown_question", "shown_state", "impact_now", "times", "trend", "last_seen",
        "owner",
    ]  # fmt: skip
    list_filter: ClassVar = ["state", "knowledge_base", "owner", "last_seen"]
    list_select_related = ["owner"]
    list_per_page = 50
    show_full_result_count = False
    search_fields = ["question"]
    ordering: ClassVar = ["-impact_score", "-pk"]
    actions: ClassVar = ["take", "release", "reopen"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gap]:
        gaps: GapQuerySet = super().get_queryset(request)
        seen = gaps.visible_to(request.user).with_trend(timezone.now())
        return seen.defer("vector")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not request.GET:
            return HttpResponseRedirect(f"{request.path}?state__exact=open")
        return super().changelist_view(request, extra_context)  # type: ignore[no-any-return]  # unfold ships no types

    def get_fieldsets(
        self, request: HttpRequest, obj: Gap | None = None
    ) -> list[tuple[str | None, dict[str, Any]]]:
        told = ["question", "state", "times", "trend", "impact_now", "reasons"]
        told += ["owner", "filled_by"]
        if obj is not None and obj.state == Gap.State.DISMISSED:
            told.append("reason")
        shown: list[tuple[str | None, dict[str, Any]]] = [(None, {"fields": told})]
        if obj is not None and obj.is_open:
            form = GapForm.names(has_role(request.user, Role.CURATOR))
            shown.append(("Fill it", {"fields": form}))
        return [
            *shown,
            ("Nearest entries", {"fields": ["nearest"]}),
            (f"Its newest questions, up to {SHOWN}", {"fields": ["before_and_after"]}),
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Gap | None = None
    ) -> list[str]:
        named = [
            name
            for _, options in self.get_fieldsets(request, obj)
            for name in options["fields"]
        ]
        return [name for name in named if name not in GapForm.declared_fields]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Gap | None:
        found: Gap | None = super().get_object(request, object_id, from_field)
        if found is not None:
            fetch_shown(found, caller(request))
        return found

    def get_form(
        self,
        request: HttpRequest,
        obj: Gap | None = None,
        change: bool = False,
        **options: Any,  # noqa: ANN401  # Django's
    ) -> type[GapForm]:
        return type("GapFormOfUser", (GapForm,), {"user": caller(request)})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Gap | None = None) -> bool:
        return has_role(request.user, Role.SME)

    def has_change_permission(
        self, request: HttpRequest, obj: Gap | None = None
    ) -> bool:
        return has_role(request.user, Role.SME) and (obj is None or obj.is_open)

    def has_delete_permission(
        self, request: HttpRequest, obj: Gap | None = None
    ) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: Gap, form: GapForm, change: bool
    ) -> None:
        form.write()
        obj.refresh_from_db()

    @admin.action(description="Take: I work on it", permissions=["change"])
    def take(self, request: HttpRequest, chosen: QuerySet[Gap]) -> None:
        """Make the user the owner of the chosen ones."""
        user = caller(request)
        change_each(
            self, request, chosen, lambda key: assign(key, by=user, owner=user), "taken"
        )

    @admin.action(description="Give back", permissions=["change"])
    def release(self, request: HttpRequest, chosen: QuerySet[Gap]) -> None:
        """Let the chosen ones be nobody's."""
        user = caller(request)
        change_each(
            self,
            request,
            chosen,
            lambda key: assign(key, by=user, owner=None),
            "given back",
        )

    @admin.action(description="Open again", permissions=["change"])
    def reopen(self, request: HttpRequest, chosen: QuerySet[Gap]) -> None:
        """Take back what was drafted, filled or dismissed."""
        user = caller(request)
        change_each(
            self, request, chosen, lambda key: reopen(key, by=user), "opened again"
        )

    @admin.display(description="question", ordering="question")
    def shown_question(self, gap: Gap) -> str:
        """Show what is asked, shortened."""
        return shortened(gap.question)

    @display(description="state", ordering="state", label=_STATES)  # type: ignore[untyped-decorator]  # unfold ships no types
    def shown_state(self, gap: Gap) -> tuple[str, str]:
        return gap.state, gap.get_state_display()

    @admin.display(description="impact", ordering="impact_score")
    def impact_now(self, gap: Gap) -> str:
        """Show about how many people ask it now."""
        return f"{impact(gap.impact_score, timezone.now()):.1f}"

    @admin.display(description="asked", ordering="questions")
    def times(self, gap: Gap) -> str:
        """Show how often and by how many."""
        often = "once" if gap.questions == 1 else f"{gap.questions} times"
        noun = "person" if gap.askers == 1 else "people"
        return f"{often} by {gap.askers} {noun}"

    @admin.display(description=f"last {TREND_PERIOD.days} days")
    def trend(self, gap: Gap) -> str:
        """Show the questions of the last period beside those of the one before."""
        sign = (
            "▲" if gap.recent > gap.before else "▼" if gap.recent < gap.before else "="
        )
        return f"{gap.recent} {sign} {gap.before} before"

    @admin.display(description="why")
    def reasons(self, gap: Gap) -> str:
        """Show what went wrong with its questions."""
        return ", ".join(
            f"{_reason(why)} ({count})" for why, count in reasons_of(gap).most_common()
        )

    @admin.display(description="filled by")
    def filled_by(self, gap: Gap) -> str:
        """Show the entry, or that proposals are on their way."""
        if gap.entry is not None:
            return format_html(
                "{}, {}", link_to_entry(gap.entry_id), gap.entry.get_state_display()
            )
        return (
            "proposals of a language model" if gap.proposing_job_id else "nothing yet"
        )

    @admin.display(description="entries")
    def nearest(self, gap: Gap) -> SafeString:
        rows = (
            (
                link_to_entry(hit.entry_id),
                hit.question,
                hit.text[:200],
                "verified" if hit.is_verified else "not verified",
                rounded(hit.distance),
            )
            for hit in gap.nearest_hits
        )
        return table(("entry", "question", "text", "state", "distance"), rows)

    @admin.display(description="before and after")
    def before_and_after(self, gap: Gap) -> SafeString:
        """Show the questions, and what came of asking them again."""
        heads = ("question", "asked by", "when", "why", "before", "after")
        return table(heads, map(_row, gap.tried))


def _reason(why: str) -> str:
    return REASONS[Reason(why)].title if why in set(Reason) else why.replace("_", " ")


def _row(tried: Tried) -> tuple[object, ...]:
    before, after = tried.before, tried.after
    return (
        link_to(before),
        before.asker.get_username() if before.asker else "",
        f"{before.created_at:%Y-%m-%d %H:%M}",
        tried.why,
        shortened(before.shown_text),
        _said_after(after, tried.is_better) if after else "not asked again yet",
    )


def _said_after(after: Answer, is_better: bool | None) -> str:
    if is_better is None:
        return "being asked"
    said = "answered" if is_better else "no better"
    if after.is_unsourced:
        said = f"{said}, without a source"
    return f"{said}: {shortened(after.shown_text)}"
