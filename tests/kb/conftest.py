import pytest
from rest_framework.test import APIClient


@pytest.fixture
def api():
    """Return a client of the REST interface, signed in as the given user."""

    def signed_in(user) -> APIClient:
        client = APIClient()
        client.force_authenticate(user)
        return client

    return signed_in
