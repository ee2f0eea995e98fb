from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.functional import cached_property
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.ids import number_in
from accounts.people import by_name
from accounts.roles import Role, has_role_in, has_role_somewhere
from kb.audiences.models import Audience
from kb.documents.models import Document, Section
from kb.embedding.services import active_model
from kb.entries.models import Entry
from kb.entries.revisions import lock_all
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import restore_entry, retire_entry, verify_entry
from kb.entries.values import EDITABLE, REASON_LIMIT, UNVERIFIED_CONFIDENCE, end_of_day
from kb.interface.admin import ServiceForm
from kb.text.cleaning import TEXT_LIMIT


class ValidityField(forms.SplitDateTimeField):
    """A moment, or a date without a time, which stands for the end of that day."""

    def compress(self, data_list: Any) -> Any:
        if data_list and data_list[0] and data_list[1] is None:
            return end_of_day(data_list[0])
        return super().compress(data_list)


class EntryForm(ServiceForm):
    text = forms.CharField(
        max_length=2 * TEXT_LIMIT, widget=UnfoldAdminTextareaWidget(attrs={"rows": 5})
    )
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Why it changes; kept with the revision.",
    )
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Entry
        fields = ["knowledge_base", *EDITABLE, "state", "confidence", "origin"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limit_rows()
        self._limit_states()
        if "valid_until" in self.fields:
            said = (
                "From this time on it is never used as evidence; without a time, from "
                "the end of that day."
            )
            self.fields["valid_until"].help_text = said
        if "confidence" in self.fields:
            said = "Above 0, at most 1. Verified entries have 1; no others do."
            self.fields["confidence"].help_text = said
        if self.instance.pk:
            self.initial["revision"] = self.instance.revisions.values_list(
                "number", flat=True
            ).first()
            return
        self.initial.setdefault("confidence", UNVERIFIED_CONFIDENCE)
        self.preselect_only("audience", Audience.objects.visible_to(self.user))
        for name in {"audience", "language", "confidence"} & self.fields.keys():
            self.fields[name].required = False
        for name, help_text in (
            ("audience", "By default, the document's audience."),
            ("section", "The document's sections are listed once the entry is saved."),
        ):
            if name in self.fields:
                self.fields[name].help_text = help_text

    @cached_property
    def may_verify(self) -> bool:
        if self.instance.pk:
            base: int = self.instance.knowledge_base_id
            return has_role_in(self.user, Role.CURATOR, base)
        return has_role_somewhere(self.user, Role.CURATOR)

    def write(self) -> Entry:
        return self._change() if self.instance.pk else self._create()

    def lock(self) -> None:
        """Lock the entry, in the same order as the services do."""
        if self.instance.pk:
            active_model(for_share=True)
            lock_all([self.instance.pk])

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

    def _limit_rows(self) -> None:
        document_id: Any = self.data.get("document") or self.instance.document_id
        sections = Section.objects.none()
        if (number := number_in(str(document_id))) is not None:
            sections = Section.objects.filter(document=number)
        for name, rows in (
            ("audience", Audience.objects.visible_to(self.user)),
            ("document", Document.objects.visible_to(self.user)),
            ("section", sections),
            ("owner", by_name(User.objects.filter(is_active=True))),
        ):
            if name in self.fields:
                field: Any = self.fields[name]
                field.queryset = rows

    def _limit_states(self) -> None:
        hidden = set() if self.may_verify else {Entry.State.VERIFIED}
        if not self.instance.pk:
            hidden |= {Entry.State.RETIRED, Entry.State.PROPOSED}
        if "state" in self.fields:
            field: Any = self.fields["state"]
            field.choices = [
                choice
                for choice in field.choices
                if choice[0] not in hidden - {self.instance.state}
            ]
