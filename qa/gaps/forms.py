from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.roles import Role, has_role
from kb.audiences.models import Audience
from kb.interface.admin import ServiceForm
from qa.gaps.escalations import Kept
from qa.gaps.models import Gap
from qa.gaps.services import TEXT_LIMIT, dismiss, draft, expected_answers, link, propose


class KeptForm(ServiceForm):
    """What an expert says and how it becomes an entry; `user` is set by the admin."""

    user: User

    audience = forms.ModelChoiceField(
        Audience.objects.none(),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Who may see the entry.",
    )
    verify = forms.BooleanField(
        label="I vouch for it: verify it at once",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="For curators; whoever asked is answered and told.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        audience = self.fields["audience"]
        if isinstance(audience, forms.ModelChoiceField):
            audience.queryset = Audience.objects.visible_to(self.user)
            everyone = audience.queryset.filter(everyone=True).first()
            self.initial.setdefault("audience", everyone and everyone.pk)
        if not has_role(self.user, Role.CURATOR):
            del self.fields["verify"]

    @property
    def kept(self) -> Kept:
        """How the entry is kept; the form is clean and has an audience."""
        given = self.cleaned_data
        return Kept(given["audience"], verify=given.get("verify", False))


_DRAFT, _LINK, _PROPOSE, _DISMISS = "draft", "link", "propose", "dismiss"
_WAYS = {
    _DRAFT: "write the answer as an entry",
    _LINK: "an entry that is there answers it",
    _PROPOSE: "let a language model propose entries",
    _DISMISS: "it is no gap; say why",
}


class GapForm(KeptForm):
    """What to do about a gap."""

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
        widget=UnfoldAdminTextInputWidget,
        help_text="As the entry puts it.",
    )
    said = forms.CharField(
        label="Answer, or why it is none",
        max_length=2 * TEXT_LIMIT,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text="Word for word what will be answered. What a thumb down expected "
        "stands here already.",
    )
    number = forms.IntegerField(
        label="Number of the entry",
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="One of the nearest below, or any other that you may see.",
    )

    class Meta:
        model = Gap
        fields: ClassVar[list[str]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # Django's
        super().__init__(*arguments, **options)
        how = self.fields["how"]
        if isinstance(how, forms.ChoiceField):
            is_curator = has_role(self.user, Role.CURATOR)
            ways = _WAYS.items()
            how.choices = [way for way in ways if is_curator or way[0] != _PROPOSE]
        self.initial.setdefault("asked", self.instance.question)
        expected = expected_answers(self.instance, self.user).first()
        if expected is not None:
            self.initial.setdefault("said", expected.expected_answer)

    @classmethod
    def names(cls, is_curator: bool) -> list[str]:
        """Return the fields that a user sees."""
        names = ["how", "asked", "said", "number", "audience"]
        return [*names, "verify"] if is_curator else names

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
        said, asked = given["said"], given["asked"]
        return draft(key, by=self.user, text=said, kept=self.kept, question=asked)
