"""Passwords, with a bound on guesses that holds for REST, pages and admin alike; sessions."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import HttpRequest

from accounts.groups import remember_groups
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

    def get_user(self, user_id: int) -> User | None:
        """Return the active user of a session with the names of the groups: one query."""
        names = Group.objects.filter(user=OuterRef("pk")).order_by().values("name")
        found = User.objects.annotate(group_names=ArraySubquery(names))
        user = found.filter(pk=user_id).first()
        if user is None or not self.user_can_authenticate(user):
            return None
        remember_groups(user, user.group_names)
        return user
