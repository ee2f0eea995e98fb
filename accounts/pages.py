"""One's own API tokens as a page: made, shown once, revoked."""

from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.exceptions import TokenNotFoundError
from accounts.models import ApiToken
from accounts.roles import caller
from accounts.services import MAX_TOKEN_DAYS, create_token, revoke_token


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


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List one's own tokens; POST makes one and shows its secret this once."""
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
    with suppress(TokenNotFoundError):  # revoked before, in another window
        revoke_token(token_id=token_id, by=caller(request))
    return redirect("own-tokens")
