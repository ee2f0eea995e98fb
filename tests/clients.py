"""Test clients for pages and for REST, signed in as a given user."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient


def page_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def rest_client(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def inline_rows(
    prefix: str, *rows: Mapping[str, object], there: int = 0
) -> dict[str, object]:
    """Return the POST data of an inline formset; `there` counts existing rows."""
    given: dict[str, object] = {
        f"{prefix}-TOTAL_FORMS": len(rows),
        f"{prefix}-INITIAL_FORMS": there,
    }
    for at, row in enumerate(rows):
        given |= {f"{prefix}-{at}-{name}": value for name, value in row.items()}
    return given
