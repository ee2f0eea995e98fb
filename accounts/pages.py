"""A user's own pages: profile with password and preferences, API tokens, and undo."""

import math
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.account_forms import OwnPasswordForm
from accounts.exceptions import NescioError, ThrottledError, TokenNotFoundError
from accounts.models import ApiToken, Preferences
from accounts.roles import caller
from accounts.services import (
    MAX_TOKEN_DAYS,
    alerts_of,
    alerts_open_to,
    create_token,
    preferences_of,
    refuse_local_sign_in,
    revoke_token,
)
from accounts.throttles import login_wait
from accounts.undo import read_offer, some_of


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100, label="What it is for", help_text="Such as: help desk system."
    )
    days = forms.IntegerField(
        label="Days until it expires",
        min_value=1,
        max_value=MAX_TOKEN_DAYS,
        initial=lambda: settings.TOKEN_DAYS or None,
    )


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    language = forms.ChoiceField(
        label="Language of refusals",
        choices=[("", "the question's"), *Preferences.Language.choices],
        required=False,
    )

    alerts = forms.MultipleChoiceField(
        label="Mail me when",
        choices=Preferences.Alert.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    class Meta:
        model = Preferences
        fields = ("language", "mails_notices", "alerts")

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(
            data,
            instance=preferences_of(user),
            initial={"alerts": alerts_of(user)},
            label_suffix="",
        )
        offered = [(alert.value, alert.label) for alert in alerts_open_to(user)]
        self.fields["alerts"].choices = offered  # type: ignore[attr-defined]  # a choice field
        if not offered:
            del self.fields["alerts"]


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def profile(request: HttpRequest) -> HttpResponse:
    """Show the user's profile; POST changes their password and ends other sessions."""
    user = caller(request)
    has_password = settings.LOCAL_SIGN_IN and user.has_usable_password()
    form = OwnPasswordForm(user, request.POST or None, label_suffix="")
    if request.method == "POST":
        refuse_local_sign_in()
        if wait := login_wait(request, user.get_username()):
            raise ThrottledError(
                f"Too many attempts. Try again in {math.ceil(wait)} s.", wait
            )
        if has_password and form.is_valid():
            form.save()
            update_session_auth_hash(request, user)
            messages.success(request, "Your password was changed.")
            return redirect("profile")
    shown = {
        "form": form if has_password else None,
        "preferences": PreferencesForm(user=user),
        "roles": user.groups.order_by("name"),
        "is_mailed": bool(user.email and settings.MAIL_URL),
        "provider": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/profile.html", shown, status=status)


@login_required
@require_POST
def set_preferences(request: HttpRequest) -> HttpResponse:
    """Save the user's language of refusals and mail preferences."""
    form = PreferencesForm(request.POST, user=caller(request))
    if form.is_valid():
        form.save()
        messages.success(request, "Saved.")
    else:
        said = (str(each) for errors in form.errors.values() for each in errors)
        messages.error(request, " ".join(said))
    return redirect("profile")


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List the user's tokens; POST creates one and shows its secret only this time."""
    user, issued = caller(request), None
    form = TokenForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        issued = create_token(
            user=user,
            name=form.cleaned_data["name"],
            expires_in=timedelta(days=form.cleaned_data["days"]),
        )
        form = TokenForm()
    shown = {
        "form": form,
        "issued": issued,
        "tokens": ApiToken.objects.owned_by(user).order_by("-created", "-pk"),
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/tokens.html", shown, status=status)


@login_required
@require_POST
def revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    with suppress(TokenNotFoundError):  # already revoked, in another window
        revoke_token(token_id=token_id, by=caller(request))
    return redirect("own-tokens")


@login_required
@require_POST
def undo(request: HttpRequest) -> HttpResponse:
    """Undo an action and return to the page where the undo was offered."""
    user = caller(request)
    offer = read_offer(request.POST.get("undo", ""), user)
    try:
        stays = offer.take_back(user)
    except NescioError as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Undone: {offer.said}")
        if stays:
            messages.warning(request, some_of(stays))
    return redirect(offer.back)
