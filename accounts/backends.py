"""Passwords, with a bound on guesses that holds for REST, pages and admin alike."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from accounts.throttles import login_wait


class ThrottledModelBackend(ModelBackend):
    """Checks a password unless too many were tried; a tried one is counted, right or wrong."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: object,
    ) -> User | None:
        """Return the active user whose password it is.

        Raises:
            PermissionDenied: Too many tries; Django then reports a failed sign-in.
        """
        if request is not None and username is not None:
            if login_wait(request, username, counted=True) is not None:
                raise PermissionDenied
            if "\0" in username:  # PostgreSQL can't compare it
                return None
        return super().authenticate(request, username, password, **kwargs)
