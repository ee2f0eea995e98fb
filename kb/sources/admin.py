"""Followed sources: their audiences, how they are read, and their last check."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts.admin_parts import act_on_row, confirmed
from accounts.base_admin import Fieldsets, action, display, holders_of
from accounts.exceptions import NescioError
from accounts.roles import caller
from kb.audiences.models import Audience
from kb.exceptions import InvalidKnowledgeError
from kb.interface.admin import InBaseAdmin, WorkedOnAdmin, job_of
from kb.sources import services
from kb.sources.kinds import KINDS
from kb.sources.models import FollowedDocument, FollowedSource
from kb.sources.services import Following, Rule
from kb.upkeep.models import Flag

_SHOWN = 100
_PERIODS = ((1, "hour"), (6, "6 hours"), (24, "day"), (168, "week"))
_COLOURS = {
    "works": "success",
    "being read": "warning",
    "look at it": "warning",
    "failing": "danger",
    "not read yet": "info",
    "off": "info",
}
_MEANINGS = {
    "listed": "documents in the source",
    "new": "new documents",
    "changed": "changed documents",
    "unchanged": "unchanged documents",
    "moved": "documents with a changed audience",
    "gone": "documents that are gone",
    "unnamed": "documents that match no line, not imported",
    "failed": "documents that could not be read",
    "entries_created": "entries created, to be reviewed",
    "entries_changed": "entries changed",
    "proposed": "entries proposed for retirement",
}


def parse_rules(text: str, *, by: User) -> list[Rule]:
    """Parse lines of the form "group = audience".

    Raises:
        InvalidKnowledgeError: A line is malformed, or `by` may not see its audience.
    """
    audiences = {each.slug: each for each in Audience.objects.visible_to(by)}
    rules = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        group, equals, slug = line.rpartition("=")
        audience = audiences.get(slug.strip())
        if not equals or audience is None:
            raise InvalidKnowledgeError(
                "rules",
                f"Line {number}, {line.strip()[:100]!r}, is not “group = audience” "
                "with one of your audiences.",
            )
        rules.append(Rule(group.strip(), audience))
    return rules


class FollowForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    kind = forms.ChoiceField(
        choices=[(name, kind.label) for name, kind in KINDS.items()],
        widget=UnfoldAdminSelectWidget,
    )
    every_hours = forms.TypedChoiceField(
        label="Read every",
        choices=_PERIODS,
        coerce=int,
        initial=24,
        widget=UnfoldAdminSelectWidget,
    )
    audience = forms.ModelChoiceField(
        Audience.objects.none(),
        required=False,
        label="Who may see it",
        widget=UnfoldAdminSelectWidget,
        help_text="For all of it; or choose it for each part below.",
    )
    rules = forms.CharField(
        required=False,
        label="Who may see which part",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text="One line per part, such as “internal/prices = staff”: a folder, "
        "space, section or label, and an audience's short name. The first line that "
        "matches applies; “* = everyone” matches everything. Parts that match no line "
        "are not imported.",
    )

    class Meta:
        model = FollowedSource
        fields = (
            "name", "kind", "address", "knowledge_base", "every_hours", "credential",
            "is_active",
        )  # fmt: skip
        help_texts = {
            # A script shows only the line of the chosen kind.
            "address": format_html(
                "<ul>{}</ul>",
                format_html_join(
                    "",
                    '<li data-for="id_kind" data-value="{}">{}: {}.</li>',
                    (
                        (name, capfirst(kind.label), kind.address_help)
                        for name, kind in KINDS.items()
                    ),
                ),
            ),
            "credential": "If the source needs one: the name of the environment "
            f"variable that an operator set, {services.CREDENTIAL_PREFIX}...",
        }

    request: HttpRequest  # set on the class that is made for each

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        mine = Audience.objects.visible_to(self.request.user)
        chosen: Any = self.fields["audience"]
        chosen.queryset = mine
        said = (
            list(self.instance.rules.select_related("audience"))
            if self.instance.pk
            else []
        )
        if len(said) == 1 and not said[0].group:
            chosen.initial = said[0].audience
        elif said:
            self.fields["rules"].initial = "\n".join(
                f"{rule.group or '*'} = {rule.audience.slug}" for rule in said
            )
        elif mine.count() == 1:
            chosen.initial = mine.first()
        if self.instance.pk and (kind := KINDS.get(self.instance.kind)):
            self.fields["address"].help_text = f"{capfirst(kind.address_help)}."
        bases: Any = self.fields.get("knowledge_base")
        if bases and bases.queryset.count() == 1:
            bases.initial = bases.queryset.first()
        if self.instance.pk and self.instance.every_hours not in dict(_PERIODS):
            every: Any = self.fields["every_hours"]
            hours = self.instance.every_hours
            every.choices = [(hours, f"{hours} hours"), *_PERIODS]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return values
        try:
            values["following"] = services.check_following(
                self._following(values),
                by=caller(self.request),
                source_id=self.instance.pk,
            )
        except InvalidKnowledgeError as error:
            field = error.field if error.field in self.fields else None
            self.add_error(field, str(error))
        except NescioError as error:
            self.add_error(None, str(error))
        return values

    def _following(self, values: dict[str, Any]) -> Following:
        audience = values.get("audience")
        rules = parse_rules(values.get("rules", ""), by=caller(self.request))
        if bool(audience) == bool(rules):
            raise InvalidKnowledgeError(
                "audience",
                "Choose who may see it: one audience, or a line for each part.",
            )
        return Following(
            name=values["name"],
            kind=values.get("kind") or self.instance.kind,
            address=values["address"],
            knowledge_base=values.get("knowledge_base") or self.instance.knowledge_base,
            rules=[Rule("", audience)] if audience else rules,
            every_hours=values["every_hours"],
            credential=values["credential"],
            is_active=values["is_active"],
        )


@admin.register(FollowedSource)
class FollowedSourceAdmin(InBaseAdmin, WorkedOnAdmin):
    form = FollowForm
    list_display = [
        "name", "shown_kind", "knowledge_base", "condition", "checked_at", "next_check_at",
    ]  # fmt: skip
    list_filter = ["knowledge_base", "is_active"]
    list_select_related = ["knowledge_base"]
    search_fields = ["name", "address"]
    actions_list = ["follow"]
    actions_detail = ["check_this", "accept_this"]
    readonly_fields = ["outcome", "owner", "next_check_at"]
    fixed_fields = ["shown_kind", "knowledge_base"]
    has_check_permission = holders_of("kb.change_followedsource")
    has_follow_permission = holders_of("kb.add_followedsource")
    _SAID = ("name", "kind", "address", "knowledge_base", "audience", "rules",
             "every_hours", "credential", "is_active")  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[FollowedSource]:
        return FollowedSource.objects.visible_to(request.user).order_by("name", "pk")

    def get_fieldsets(
        self, request: HttpRequest, obj: FollowedSource | None = None
    ) -> Fieldsets:
        if obj is None:
            return [(None, {"fields": self._SAID})]
        said = ["shown_kind" if each == "kind" else each for each in self._SAID]
        return [
            (None, {"fields": ["outcome"]}),
            ("How it is followed", {"fields": [*said, "owner", "next_check_at"]}),
        ]

    def get_form(
        self,
        request: HttpRequest,
        obj: FollowedSource | None = None,
        change: bool = False,
        **options: Any,
    ) -> Any:
        made = super().get_form(request, obj, change, **options)
        # The kind cannot be changed.
        fields = {"kind": None} if obj and "kind" in made.base_fields else {}
        return type(made.__name__, (made,), {"request": request, **fields})

    def has_accept_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        row = self.get_object(request, object_id) if object_id else None
        return self.has_check_permission(request) and row is not None and bool(row.note)

    def save_model(
        self, request: HttpRequest, obj: FollowedSource, form: FollowForm, change: bool
    ) -> None:
        following, by = form.cleaned_data["following"], caller(request)
        if change:
            services.change_source(obj.pk, following, by=by)
        else:
            obj.pk = services.follow_source(following, by=by).pk
        obj.refresh_from_db()

    def response_add(
        self,
        request: HttpRequest,
        obj: FollowedSource,
        post_url_continue: str | None = None,
    ) -> HttpResponse:
        return act_on_row(
            self,
            request,
            obj.pk,
            lambda: (
                "The source is followed and is being read for the first time."
                if obj.is_active
                else "It is saved, and is read once you choose Check now."
            ),
        )

    def delete_model(self, request: HttpRequest, obj: FollowedSource) -> None:
        services.unfollow_source(obj.pk, by=caller(request))

    @action(description="Follow a source", icon="add", permissions=["follow"])
    def follow(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:kb_followedsource_add")

    @action(description="Check now", icon="sync", permissions=["check"])
    @confirmed("Check this source now?")
    def check_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._check(request, object_id, accept_loss=False)

    @action(description="Propose what is missing", permissions=["accept"])
    @confirmed("Check it now and propose to retire every entry that it no longer has?")
    def accept_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._check(request, object_id, accept_loss=True)

    def _check(
        self, request: HttpRequest, object_id: str, *, accept_loss: bool
    ) -> HttpResponse:
        def begin() -> str:
            services.check_now(
                self.found(request, object_id).pk,
                by=caller(request),
                accept_loss=accept_loss,
            )
            return "The source is being read."

        return act_on_row(self, request, object_id, begin)

    @admin.display(description="kind", ordering="kind")
    def shown_kind(self, row: FollowedSource) -> str:
        kind = KINDS.get(row.kind)
        return kind.label if kind else row.kind

    @display(description="condition", label=_COLOURS)
    def condition(self, row: FollowedSource) -> str:
        if row.error:
            return "failing"
        if not row.is_active:
            return "off"
        if row.checked_at is None:
            return "not read yet"
        return "look at it" if row.note or row.counts.get("failed") else "works"

    @admin.display(description="last check")
    def outcome(self, row: FollowedSource) -> str:
        job = job_of(row)
        documents = row.documents.select_related("document")
        flags = Flag.objects.open().filter(source=row)
        undecided = Exists(flags.filter(entry__document=OuterRef("document")))
        troubled = documents.filter(
            ~Q(error="") | ~Q(note="") | Q(undecided, state=FollowedDocument.State.GONE)
        )
        context = {
            "row": row,
            "job": job,
            "link": job and reverse("admin:jobs_job_change", args=[job.pk]),
            "counts": [
                (_MEANINGS[name], row.counts[name])
                for name in _MEANINGS
                if row.counts.get(name)
            ],
            "proposed": flags.count(),
            "due": reverse("admin:kb_entry_due"),
            "kept": documents.kept().count(),
            "troubled": troubled[:_SHOWN],
            "troubled_count": troubled.count(),
        }
        return render_to_string("admin/kb/followedsource/_outcome.html", context)
