"""An entry that is in the inbox for its end says when that is, not how long it waits."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from tests.clients import page_client
from tests.factories import make_curator, make_entry, set_role

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("days", "said"), [(25.1, "ends in 3 weeks, 4 days"), (-3.1, "ended 3 days, 2")]
)
def test_it_says_when_it_ends(days, said):
    curator = make_curator()
    set_role(curator, role=Role.CURATOR)
    make_entry(valid_until=timezone.now() + timedelta(days=days))

    page = page_client(curator).get(reverse("inbox")).content.decode()

    assert said in page.replace("\xa0", " ")
    assert ">waiting " not in page


def test_one_that_is_due_for_another_reason_says_how_long_it_waits():
    curator = make_curator()
    set_role(curator, role=Role.CURATOR)
    make_entry(state="in_review", valid_until=timezone.now() + timedelta(days=40))

    page = page_client(curator).get(reverse("inbox")).content.decode()

    assert ">waiting " in page
    assert "ends in" not in page
