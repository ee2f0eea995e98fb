from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest


def caller(request: HttpRequest) -> User:
    """Return who is signed in.

    Raises:
        PermissionDenied: Nobody is.
    """
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user
