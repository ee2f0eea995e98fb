"""Sign-in and sign-out pages: by password, by the identity provider, by a link."""

import logging
import math
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import BACKEND_SESSION_KEY, login
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import base36_to_int
from django.views.decorators.cache import never_cache
from jwt import PyJWTError
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)
from requests import RequestException

from accounts.authentication import find_user
from accounts.exceptions import ForbiddenError, ThrottledError
from accounts.ids import number_in
from accounts.provider.linking import SignInRefusedError
from accounts.provider.protocol import (
    ProviderBackend,
    ProviderUnavailableError,
    discovery,
    setting,
)
from accounts.services import refuse_local_sign_in
from accounts.throttles import client_address, seconds_to_wait

logger = logging.getLogger(__name__)

_BACKEND = f"{ProviderBackend.__module__}.{ProviderBackend.__qualname__}"
_LEFT_PROVIDER = "left_provider"


class SignInPage(LoginView):
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        refuse_local_sign_in()
        return super().post(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        following = self.get_redirect_url()
        query = f"?{urlencode({'next': following})}" if following else ""
        return {
            **super().get_context_data(**kwargs),
            "by_password": settings.LOCAL_SIGN_IN,
            "provider": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
            "provider_address": reverse("login-provider") + query,
            "end_session": _end_session(self.request),
        }


class SignOutPage(LogoutView):
    """Ends the session here; the next page offers a link to end the provider's too.

    The Content-Security-Policy forbids a form to redirect to another site, but not a
    link.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        by_provider = request.session.get(BACKEND_SESSION_KEY) == _BACKEND
        response = super().post(request, *args, **kwargs)
        if by_provider:
            request.session[_LEFT_PROVIDER] = True
        return response


def _end_session(request: HttpRequest) -> str:
    """Return the provider's sign-out URL, once after a sign-out here; otherwise ""."""
    if not request.session.pop(_LEFT_PROVIDER, False) or not settings.OIDC_ISSUER:
        return ""
    try:
        address: str = discovery().get("end_session_endpoint", "")
    except ProviderUnavailableError:
        return ""
    back = request.build_absolute_uri(reverse("login"))
    client = settings.OIDC_RP_CLIENT_ID
    query = urlencode({"client_id": client, "post_logout_redirect_uri": back})
    return f"{address}?{query}" if address else ""


@never_cache
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Send anonymous users to the common sign-in page if there is a provider."""
    if settings.OIDC_ISSUER and not request.user.is_authenticated:
        following = request.GET.get("next", reverse("admin:index"))
        return redirect(f"{reverse('login')}?{urlencode({'next': following})}")
    return admin.site.login(request)


class _Start(OIDCAuthenticationRequestView):  # type: ignore[misc]  # the library ships no types
    get_settings = staticmethod(setting)


class _Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the library ships no types
    get_settings = staticmethod(setting)

    def login_success(self) -> HttpResponse:
        response: HttpResponse = super().login_success()
        self.request.session.set_expiry(settings.OIDC_SESSION)
        return response

    def login_failure(self) -> HttpResponse:
        said = self.request.GET.get("error_description") or self.request.GET.get(
            "error", "this browser did not start a sign-in here"
        )
        raise SignInRefusedError(f"Sign-in was cancelled: {said[:300]}. {_AGAIN}")


_AGAIN = "Begin again at the sign-in page."


@never_cache
def provider_start(request: HttpRequest) -> HttpResponseBase:
    """Redirect to the provider with state, nonce and PKCE challenge."""
    if not settings.OIDC_ISSUER:
        return redirect("login")
    count_attempt(request)
    response: HttpResponseBase = _Start.as_view()(request)
    return response


@never_cache
def provider_callback(request: HttpRequest) -> HttpResponseBase:
    """Complete a sign-in with the code that the provider sent back with the browser.

    Raises:
        SignInRefusedError: The response, or the token exchanged for it, is not valid.
    """
    if not settings.OIDC_ISSUER or not {"state", "error"} & request.GET.keys():
        return redirect("login")
    # The library ends the session on any error, even one from a forged link.
    began = request.session.get("oidc_states", {})
    if "error" in request.GET and request.GET.get("state") not in began:
        raise SignInRefusedError(f"Sign-in was cancelled. {_AGAIN}")
    try:
        response: HttpResponseBase = _Callback.as_view()(request)
    except (SuspiciousOperation, PyJWTError, RequestException) as error:
        logger.warning("A sign-in by the provider failed: %r", error)
        raise SignInRefusedError(
            f"The sign-in could not be verified ({type(error).__name__}), so it was "
            f"refused. {_AGAIN} The log has details."
        ) from error
    return response


def count_attempt(request: HttpRequest) -> None:
    """Count a sign-in attempt; raise `ThrottledError` if the address had too many."""
    wait = seconds_to_wait("login_address", client_address(request))
    if wait is not None:
        raise ThrottledError(
            "Too many attempts to sign in from this address. "
            f"Try again in {math.ceil(wait)} s.",
            wait,
        )


_LINK_SECONDS = 600


class _LinkTokens(PasswordResetTokenGenerator):
    """Tokens that are valid until the next sign-in, at most `_LINK_SECONDS`."""

    key_salt = "accounts.provider.pages.sign_in_link"

    def check_token(self, user: User | None, token: str | None) -> bool:
        if not token or not super().check_token(user, token):
            return False
        made = base36_to_int(token.partition("-")[0])
        return self._num_seconds(self._now()) - made <= _LINK_SECONDS


def sign_in_path(user: User) -> str:
    """Return the path that signs `user` in once; for manage.py sign_in_link."""
    return reverse("login-link", args=[user.pk, _LinkTokens().make_token(user)])


@never_cache
def link(request: HttpRequest, user_id: str, token: str) -> HttpResponse:
    count_attempt(request)
    user = find_user(pk=number_in(user_id) or 0, is_active=True)
    if user is None or not _LinkTokens().check_token(user, token):
        raise ForbiddenError(
            "This link was used, has expired or is not valid. "
            "Create another: manage.py sign_in_link NAME"
        )
    logger.warning("%s signs in with a link of manage.py sign_in_link", user.username)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    request.session.set_expiry(settings.OIDC_SESSION)
    return redirect("ask")
