from typing import Any

from django import forms
from django.contrib.auth.models import User
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from accounts.roles import Role, has_role
from kb.admin.rehearsal import ServiceForm
from kb.models import Audience
from qa.services.escalations import Kept


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
