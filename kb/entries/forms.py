from typing import Any

from django import forms
from django.contrib.auth.models import User
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from kb.audiences.models import Audience
from kb.documents.models import Document, Section
from kb.embedding.services import active_model
from kb.entries.models import Entry
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import restore_entry, retire_entry, verify_entry
from kb.entries.values import REASON_LIMIT, TEXT_LIMIT, UNVERIFIED_CONFIDENCE
from kb.interface.admin import ServiceForm


class EntryForm(ServiceForm):
    """An entry, written by the services; `user` and `may_verify` are set by the admin."""

    user: User
    may_verify: bool

    text = forms.CharField(
        max_length=2 * TEXT_LIMIT, widget=UnfoldAdminTextareaWidget(attrs={"rows": 5})
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Why; kept with the revision.",
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Entry
        fields = [
            "knowledge_base",
            "document",
            "section",
            "question",
            "text",
            "state",
            "confidence",
            "audience",
            "language",
            "valid_until",
            "review_interval_days",
            "owner",
            "product_line",
            "line_of_business",
            "origin",
        ]

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        self._limit_choices()
        self._limit_states()
        if self.instance.pk:
            self.initial["revision"] = self.instance.revisions.values_list(
                "number", flat=True
            ).first()
            return
        self.initial.setdefault("confidence", UNVERIFIED_CONFIDENCE)
        for name in ("audience", "language", "confidence"):
            if name in self.fields:
                self.fields[name].required = False
        if "audience" in self.fields:
            self.fields["audience"].help_text = "By default that of the document."
        if "section" in self.fields:
            self.fields[
                "section"
            ].help_text = (
                "Offers the document's sections once the entry is saved with it."
            )
        if "state" in self.fields:
            self._choices("state").choices = [
                choice
                for choice in self._choices("state").choices
                if choice[0] != Entry.State.RETIRED
                and (choice[0] != Entry.State.PROPOSED or self._is_proposed())
            ]

    def _is_proposed(self) -> bool:
        return bool(self.instance.state == Entry.State.PROPOSED)

    def write(self) -> Entry:
        """Make or change the entry."""
        return self._change() if self.instance.pk else self._create()

    def lock(self) -> None:
        """Hold the entry, in the order that the services lock in."""
        if self.instance.pk:
            active_model(for_share=True)
            Entry.objects.select_for_update(no_key=True).filter(
                pk=self.instance.pk
            ).first()

    def _create(self) -> Entry:
        fields = dict(self.cleaned_data)
        del fields["revision"]
        state = fields.pop("state")
        confidence = fields.pop("confidence")
        if state == Entry.State.VERIFIED:
            fields["verify"] = True
        else:
            fields["state"] = state
        if confidence is not None:
            fields["confidence"] = confidence
        return create_entry(author=self.user, **fields)

    def _change(self) -> Entry:
        cleaned, entry = self.cleaned_data, self.instance
        changes = {
            name: cleaned[name]
            for name in self.changed_data
            if name not in {"reason", "revision"}
        }
        expected, reason = cleaned["revision"], cleaned["reason"]
        state = changes.pop("state", None)
        if state and entry.state == Entry.State.RETIRED:
            restored = restore_entry(
                entry_id=entry.pk,
                by=self.user,
                reason=reason,
                expected_revision=expected,
            )
            expected, state = None, state if state != restored.state else None
        if state == Entry.State.VERIFIED:
            changes.pop("confidence", None)
        elif state and state != Entry.State.RETIRED:
            changes["state"] = state
        if changes:
            edit_entry(
                entry_id=entry.pk,
                author=self.user,
                may_verify=self.may_verify,
                expected_revision=expected,
                reason=reason,
                **changes,
            )
            expected = None
        if state in {Entry.State.VERIFIED, Entry.State.RETIRED}:
            change = verify_entry if state == Entry.State.VERIFIED else retire_entry
            change(
                entry_id=entry.pk,
                by=self.user,
                reason=reason,
                expected_revision=expected,
            )
        return Entry.objects.get(pk=entry.pk)

    def _limit_choices(self) -> None:
        """Offer what the user may see: of sections, those of the chosen document."""
        document_id: Any = self.data.get("document") or self.instance.document_id
        sections = Section.objects.none()
        if str(document_id or "").isdecimal() and len(str(document_id)) < 19:
            sections = Section.objects.filter(document=int(document_id))
        for name, rows in (
            ("audience", Audience.objects.visible_to(self.user)),
            ("document", Document.objects.visible_to(self.user)),
            ("section", sections),
            ("owner", User.objects.filter(is_active=True).order_by("username")),
        ):
            if name in self.fields:
                self._choices(name).queryset = rows

    def _limit_states(self) -> None:
        """Offer "verified" to who may verify, and where it stands so already."""
        stands = self.instance.pk and self.instance.state == Entry.State.VERIFIED
        if "state" not in self.fields or self.may_verify or stands:
            return
        self._choices("state").choices = [
            choice
            for choice in self._choices("state").choices
            if choice[0] != Entry.State.VERIFIED
        ]

    def _choices(self, name: str) -> Any:  # noqa: ANN401  # of two kinds of fields
        return self.fields[name]
