import pytest
from django.contrib.auth.models import User

from tests.clients import rest_client
from tests.factories import make_curator


@pytest.fixture
def api():
    """Return a client of the REST interface, signed in as the given user."""

    return rest_client


@pytest.fixture
def boss(client):
    """Return a client signed in as a superuser."""
    user = User.objects.create_superuser("boss")
    client.force_login(user)
    client.user = user
    return client


@pytest.fixture
def curator(client):
    """Return a client signed in as a curator who may use the admin."""
    user = make_curator()
    user.is_staff = True
    user.save()
    client.force_login(user)
    client.user = user
    return client
