"""The ledger of confidences in the admin: who sees what, and taking moves back."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from qa.models import ConfidenceMove
from qa.votes.entry_confidence import weigh_entry
from tests.factories import make_audience, make_staff

from .test_poisoning import proposed, voted

pytestmark = pytest.mark.django_db

LIST = reverse("admin:qa_confidencemove_changelist")


@pytest.fixture
def entry():
    found = proposed(0.5)
    voted(found, 9, is_up=True)
    weigh_entry(found.pk)
    return found


def test_it_shows_what_moved_and_from_where_to_where(client, entry):
    client.force_login(make_staff(Role.CURATOR))

    page = client.get(LIST).content.decode()

    assert "A replacement card costs 99 euros." in page
    assert "0.50\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}0.70" in page


def test_entries_of_other_audiences_are_not_there(client, entry):
    entry.audience = make_audience("board", groups=["board"])
    entry.save()
    client.force_login(make_staff(Role.CURATOR))

    page = client.get(LIST).content.decode()

    assert "99 euros" not in page


def test_a_curator_takes_a_move_back(client, entry):
    client.force_login(make_staff(Role.CURATOR))
    move = ConfidenceMove.objects.get()

    said = client.post(
        LIST, {"action": "undo", "_selected_action": [move.pk]}, follow=True
    )

    entry.refresh_from_db()
    assert entry.confidence == 0.5
    assert "1 restored to the confidence without votes" in said.content.decode()


def test_the_number_of_queries_does_not_grow(
    client, entry, django_assert_max_num_queries
):
    client.force_login(make_staff(Role.CURATOR))
    with django_assert_max_num_queries(20):
        client.get(LIST)
