"""Clients of pages and of the REST interface, signed in as somebody."""

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
    """Return what a form of rows beside another form sends; `there` are in the database."""
    given: dict[str, object] = {
        f"{prefix}-TOTAL_FORMS": len(rows),
        f"{prefix}-INITIAL_FORMS": there,
    }
    for at, row in enumerate(rows):
        given |= {f"{prefix}-{at}-{name}": value for name, value in row.items()}
    return given
