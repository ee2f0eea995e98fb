"""Forms that create an account or change a password, one's own or another user's."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from unfold.forms import AdminPasswordChangeForm, UserCreationForm
from unfold.widgets import UnfoldBooleanSwitchWidget

from accounts.invitations import days_of_links
from accounts.models import ApiToken


class RevokesTokens:
    """A password form that also revokes the user's tokens if `revoke_tokens` is ticked.

    Someone who knew the old password may also hold a token.
    """

    cleaned_data: dict[str, Any]

    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)  # type: ignore[misc]  # the form's
        if self.cleaned_data["revoke_tokens"]:
            ApiToken.objects.owned_by(user).delete()
        return user


class OwnPasswordForm(RevokesTokens, PasswordChangeForm):
    revoke_tokens = forms.BooleanField(
        label="Revoke my API tokens too",
        required=False,
        help_text="They work without the password and stay valid after the change.",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # The profile page has several forms, and this is not the first of them.
        self.fields["old_password"].widget.attrs.pop("autofocus")


class PasswordForm(RevokesTokens, AdminPasswordChangeForm):  # type: ignore[misc]  # unfold has no types
    """The form with which an administrator sets a user's password."""

    revoke_tokens = forms.BooleanField(
        label="Revoke their API tokens",
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Tokens work without the password and stay valid after the change.",
    )


# Values of `usable_password`: Django's for an unusable password, and our own, which
# `clean` turns into Django's.
BY_LINK, _NONE = "false", "none"


class NewAccountForm(UserCreationForm):  # type: ignore[misc]  # unfold has no types
    """The form for a new account, whose password is by default chosen by a link."""

    class Media:
        css: ClassVar = {"all": ["admin/css/unusable_password_field.css"]}

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if not settings.LOCAL_SIGN_IN:
            return
        field: Any = self.fields["usable_password"]
        none = [(_NONE, f"none: they sign in with {settings.OIDC_NAME}")]
        field.label, field.initial = "Password", BY_LINK
        field.choices = [
            (BY_LINK, "they choose it through a link: send an invitation"),
            ("true", "I set it here and pass it on"),
            *(none if settings.OIDC_ISSUER else ()),
        ]
        field.help_text = (
            "The link is mailed if there is a mail server and an address; otherwise it "
            "is shown to you once, to pass on. It works once, for "
            f"{days_of_links()} days."
        )

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("usable_password") == _NONE:
            self.cleaned_data["usable_password"] = BY_LINK
        cleaned: dict[str, Any] | None = super().clean()
        return cleaned
