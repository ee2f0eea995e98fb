from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from accounts.admin_parts import style
from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.interface.admin import ServiceForm
from qa.answers.submitted_text import EntryOptions
from qa.gaps.escalation_models import Escalation
from qa.gaps.escalations import REPLY_LIMIT, close, reply
from qa.gaps.models import Gap
from qa.gaps.services import TEXT_LIMIT, dismiss, draft, expected_answers, link, propose


def is_curator_of(
    user: AbstractBaseUser | AnonymousUser, row: Gap | Escalation
) -> bool:
    of = row if isinstance(row, Gap) else row.answer
    return has_role_in(user, Role.CURATOR, of.knowledge_base_id)


class ExpertForm(ServiceForm):
    """An expert's words and how they become an entry; `user` is set by the admin."""

    user: User

    audience = forms.ModelChoiceField(
        Audience.objects.none(),
        required=False,
        help_text="Who may see the entry.",
    )
    verify = forms.BooleanField(
        label="Verify now",
        required=False,
        help_text="For curators; those who asked get the answer and a notice.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        style(self)
        audience = self.fields["audience"]
        if isinstance(audience, forms.ModelChoiceField):
            audience.queryset = Audience.objects.visible_to(self.user)
            everyone = audience.queryset.filter(everyone=True).first()
            self.initial.setdefault("audience", everyone and everyone.pk)
        if not self.is_curator:
            del self.fields["verify"]

    @property
    def is_curator(self) -> bool:
        return is_curator_of(self.user, self.instance)

    @property
    def entry_options(self) -> EntryOptions:
        """How the entry is made; the form is clean and has an audience."""
        given = self.cleaned_data
        return EntryOptions(given["audience"], verify=given.get("verify", False))


_DRAFT, _LINK, _PROPOSE, _DISMISS = "draft", "link", "propose", "dismiss"
_WAYS = {
    _DRAFT: "write the answer as a new entry",
    _LINK: "link an existing entry that answers it",
    _PROPOSE: "let a language model propose entries",
    _DISMISS: "dismiss it; say why",
}


class GapForm(ExpertForm):
    how = forms.ChoiceField(
        label="How",
        choices=[],
        initial=_DRAFT,
        widget=UnfoldAdminRadioSelectWidget,
    )
    asked = forms.CharField(
        label="Question",
        max_length=TEXT_LIMIT,
        required=False,
        help_text="As the entry puts it.",
    )
    said = forms.CharField(
        label="Answer, or why it is dismissed",
        max_length=2 * TEXT_LIMIT,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text="Word for word what will be answered. Filled in with what a thumb "
        "down expected.",
    )
    number = forms.IntegerField(
        label="Entry number",
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="One of the nearest below, or any other that you may see.",
    )

    class Meta:
        model = Gap
        fields: ClassVar[list[str]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        how = self.fields["how"]
        if isinstance(how, forms.ChoiceField):
            ways = _WAYS.items()
            how.choices = [way for way in ways if self.is_curator or way[0] != _PROPOSE]
        self.initial.setdefault("asked", self.instance.question)
        expected = expected_answers(self.instance, self.user).first()
        if expected is not None:
            self.initial.setdefault("said", expected.expected_answer)

    def clean(self) -> dict[str, Any]:
        how = self.cleaned_data.get("how")
        needed = {_DRAFT: "audience", _LINK: "number", _PROPOSE: "audience"}.get(
            str(how)
        )
        if needed and not self.cleaned_data.get(needed) and needed not in self.errors:
            label = (self.fields[needed].label or needed).lower()
            self.add_error(needed, f"This needs the {label}.")
        return super().clean()

    def write(self) -> Gap:
        given, key = self.cleaned_data, self.instance.pk
        if given["how"] == _LINK:
            return link(key, by=self.user, entry_id=given["number"])
        if given["how"] == _PROPOSE:
            return propose(key, by=self.user, audience=given["audience"])
        if given["how"] == _DISMISS:
            return dismiss(key, by=self.user, reason=given["said"])
        return draft(
            key,
            by=self.user,
            text=given["said"],
            options=self.entry_options,
            question=given["asked"],
        )


_ANSWER, _CLOSE = "answer", "close"


class ReplyForm(ExpertForm):
    said = forms.CharField(
        label="Reply",
        max_length=2 * REPLY_LIMIT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="The asker reads it word for word.",
    )
    how = forms.ChoiceField(
        label="What it is",
        choices=[(_ANSWER, "the answer"), (_CLOSE, "why there is no answer")],
        initial=_ANSWER,
        widget=UnfoldAdminRadioSelectWidget,
    )
    keep = forms.BooleanField(
        label="Keep the answer as an entry",
        required=False,
        initial=True,
        help_text="Question and answer, word for word; it waits for review.",
    )

    class Meta:
        model = Escalation
        fields: ClassVar[list[str]] = []

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self._keeps and not given.get("audience") and "audience" not in self.errors:
            self.add_error("audience", "Choose who may see the entry, or keep none.")
        return super().clean()

    def write(self) -> Escalation:
        given = self.cleaned_data
        if given["how"] == _CLOSE:
            return close(self.instance.pk, by=self.user, reason=given["said"])
        keep = self.entry_options if self._keeps else None
        return reply(self.instance.pk, by=self.user, text=given["said"], keep=keep)

    @property
    def _keeps(self) -> bool:
        given = self.cleaned_data
        return bool(given.get("keep")) and given.get("how") == _ANSWER
