from collections.abc import Callable

import pytest
from django.test import Client

from accounts.roles import Role
from tests.factories import make_user, set_role


@pytest.fixture
def enter(client: Client) -> Callable[[Role], Client]:
    """Sign somebody with a role in to the admin; an agent, whom it refuses, too."""

    def signed_in(role: Role) -> Client:
        set_role(user := make_user(role=None), role=role)
        client.force_login(user)
        return client

    return signed_in
