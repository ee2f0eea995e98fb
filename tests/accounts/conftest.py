import pytest

from accounts.roles import Role
from tests.clients import page_client
from tests.factories import make_staff


@pytest.fixture
def carla():
    return make_staff(Role.CURATOR, username="carla")


@pytest.fixture
def page(carla):
    return page_client(carla)
