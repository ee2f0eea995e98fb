"""A request by a name that is not allowed says which, and what to set."""

import pytest
from django.test import Client


@pytest.mark.parametrize("address", ["/api/v1/answers", "/login"])
def test_an_unknown_host_is_named_with_the_setting(db, address):
    response = Client(raise_request_exception=False).get(
        address, headers={"host": "ask.example<b>"}
    )

    said = response.content.decode()
    assert response.status_code == 400
    assert "ask.example" in said
    assert "NESCIO_ALLOWED_HOSTS" in said
    assert "<b>" not in said or response["Content-Type"] == "application/json"
    assert "DJANGO" not in said
