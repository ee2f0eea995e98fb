"""Who a command asks as, and so what it may see."""

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def find_asker(username: str) -> User:
    """Return the active user of that name; without a name the first superuser.

    Raises:
        CommandError: There is none, with exit code 2.
    """
    active = User.objects.filter(is_active=True)
    if not username:
        found = active.filter(is_superuser=True).order_by("pk").first()
        remedy = "Name one with --as USER, or make one: manage.py createsuperuser"
        missing = "There is no superuser to ask as."
    else:
        found = active.filter(username=username).first()
        known = ", ".join(active.values_list("username", flat=True)[:10]) or "none"
        missing = f"There is no active user {username!r}."
        remedy = f"There are: {known}."
    if found is None:
        raise CommandError(f"{missing} {remedy}", returncode=2)
    return found
