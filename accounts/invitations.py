"""Links for choosing a password: for an invitation, or after it was forgotten.

A link is mailed, or shown once to the administrator who created it, and never logged.
It works until a password is chosen with it, the person signs in, or it expires.
"""

import logging
from dataclasses import dataclass, field
from smtplib import SMTPException
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.mail import EmailMessage
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.acting import acting_for
from accounts.authentication import ThrottledModelBackend
from accounts.exceptions import ForbiddenError
from accounts.mail import MailFault, fault_of
from accounts.provider.pages import count_attempt
from accounts.services import refuse_local_sign_in

logger = logging.getLogger(__name__)

_SECONDS_OF_A_DAY: Final = 86_400


class _Tokens(PasswordResetTokenGenerator):
    key_salt = "accounts.invitations"


@dataclass(frozen=True, slots=True)
class Invitation:
    """A new link, which is shown only once."""

    link: str = field(repr=False)
    is_mailed: bool
    fault: MailFault | None = (
        None  # why the mail server refused it, if it was to be mailed
    )


def days_of_links() -> int:
    seconds: int = settings.PASSWORD_RESET_TIMEOUT
    return seconds // _SECONDS_OF_A_DAY


def invite(user: User) -> Invitation:
    """Create a link for `user` to choose a password, and mail it where possible.

    It is mailed within the request, so that the administrator sees a failure at once
    and no job holds the link.
    """
    refuse_local_sign_in()
    key = urlsafe_base64_encode(force_bytes(user.pk))
    path = reverse("choose-password", args=[key, _Tokens().make_token(user)])
    link = settings.PUBLIC_URL + path
    if not (settings.MAIL_URL and user.email):
        return Invitation(link=link, is_mailed=False)
    values = {"person": user, "link": link, "days": days_of_links()}
    message = EmailMessage(
        subject="Choose your password for Nescio",
        body=render_to_string("accounts/invitation.txt", values),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[user.email],
    )
    try:
        message.send()
    except (SMTPException, OSError) as error:
        fault = fault_of(error)
        logger.warning(
            "No link was mailed to user %d: the mail server %s", user.pk, fault.said
        )
        return Invitation(link=link, is_mailed=False, fault=fault)
    return Invitation(link=link, is_mailed=True)


class ChoosePasswordPage(PasswordResetConfirmView):
    """The page of a link, where the person chooses a password and is signed in."""

    post_reset_login = True
    post_reset_login_backend = (
        f"{ThrottledModelBackend.__module__}.{ThrottledModelBackend.__qualname__}"
    )
    success_url = reverse_lazy("ask")
    template_name = "accounts/choose_password.html"
    token_generator = _Tokens()

    def dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        if not settings.LOCAL_SIGN_IN:
            return redirect("login")
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> Any:
        user = super().get_user(uidb64)
        return user if user is not None and user.is_active else None

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "label_suffix": ""}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        if not self.validlink:
            # Only failed attempts count: the URL of a throttled request is logged, so a
            # link that still works must never be throttled.
            count_attempt(self.request)
            raise ForbiddenError(
                "This link was used, has expired or is not valid. Ask an administrator "
                "for a new one, or sign in with the password that you have."
            )
        return super().get_context_data(**kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        with acting_for(form.user):  # so that the audit names the user
            return super().form_valid(form)
