"""Contradicting sources from the database to what the asker sees."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from kb.models import Conflict
from kb.upkeep.conflict_resolution import keep_both
from qa.answers.asking import ask
from qa.models import Answer
from qa.policies.services import activate, active_policy, new_version
from tests.clients import page_client, rest_client
from tests.factories import make_audience, make_curator, make_entry, make_user

pytestmark = pytest.mark.django_db

QUESTION = "Who issues the fishing licence?"


@pytest.fixture
def conflict():
    """Return the conflict of two verified answers to one question."""
    make_entry("The forestry office.", question=QUESTION)
    other = make_entry("The town hall.", question=QUESTION)
    (found,) = find_entry_conflicts(other.pk)
    return found


def decide_with(**changes):
    base = active_policy(Conflict.objects.get().first.knowledge_base)
    activate(new_version(base, by=None, **changes), by=None)


def show_anyway():
    decide_with(sources_must_agree=False)


def test_a_ready_answer_that_another_contradicts_is_refused(conflict):
    answer = ask(QUESTION, asker=make_user(), channel=Answer.Channel.API)

    assert (answer.outcome, answer.reason) == ("refused", "sources_disagree")
    assert answer.contradictions == [
        {
            "conflict_id": conflict.pk,
            "entries": [conflict.first_id, conflict.second_id],
            "quotes": ["The forestry office.", "The town hall."],
        }
    ]


def test_the_page_says_why_neither_is_shown_and_that_nobody_had_decided(conflict):
    user = make_user()
    page = page_client(user)
    refused = ask(QUESTION, asker=user, channel=Answer.Channel.PAGE)
    show_anyway()
    shown = ask(QUESTION, asker=user, channel=Answer.Channel.PAGE)

    why = page.get(reverse("answer", args=[refused.pk])).content.decode()
    beside = page.get(reverse("answer", args=[shown.pk])).content.decode()

    assert "contradict each other, so none was shown as the answer" in why
    assert "None was sure enough" not in why
    assert "nobody had decided which of them is right" not in why  # its reason says so
    assert "nobody had decided which of them is right" in beside


def test_once_it_is_settled_the_answer_is_shown(conflict):
    keep_both(conflict_id=conflict.pk, by=make_curator(), reason="Two kinds.")

    answer = ask(QUESTION, asker=make_user(), channel=Answer.Channel.API)

    assert answer.outcome == "answered"
    assert answer.contradictions == []


def test_who_may_not_see_the_other_entry_gets_the_answer():
    make_entry("The forestry office.", question=QUESTION)
    board = make_audience("board", groups=["board"])
    other = make_entry("The town hall.", question=QUESTION, audience=board)
    find_entry_conflicts(other.pk)

    answer = ask(QUESTION, asker=make_user(), channel=Answer.Channel.API)

    assert answer.text == "The forestry office."


def test_rest_tells_both_quotes(conflict):
    show_anyway()
    client = rest_client(make_user(Role.AGENT))

    body = client.post("/api/v1/ask", {"question": QUESTION}, format="json").json()

    assert body["answered"]
    (found,) = body["disagreements"]
    assert found["conflict"] == conflict.pk
    assert [side["quote"] for side in found["sides"]] == [
        "The forestry office.",
        "The town hall.",
    ]
    assert body["signals"][-2] == {
        "gate": "agreement", "name": "disagreeing_sources", "value": 1.0,
        "threshold": 0.0, "passed": None,
    }  # fmt: skip


def test_rest_and_the_page_say_what_was_not_compared_yet(client):
    first = make_entry("The forestry office.", question=QUESTION)
    second = make_entry("The town hall.", question=QUESTION)
    user = make_user(Role.AGENT)
    rest = rest_client(user)
    client.force_login(user)

    def ask_both():
        body = rest.post("/api/v1/ask", {"question": QUESTION}, format="json").json()
        page = client.get(f"/answers/{body['id']}").content.decode()
        return body, page

    body, page = ask_both()
    assert body["answered"]
    assert body["not_compared"] == 2
    assert "Of the entries that were found, 2 changed" in page
    assert page.count("Not compared yet") == 2  # the notice, and the gate's verdict

    (found,) = find_entry_conflicts(second.pk)
    keep_both(conflict_id=found.pk, by=make_curator(), reason="Two kinds.")
    assert ask_both()[0]["not_compared"] == 1

    find_entry_conflicts(first.pk)
    body, page = ask_both()
    assert body["not_compared"] == 0
    assert "Not compared yet" not in page


def test_a_verified_answer_is_shown_beside_what_nobody_verified(client):
    make_entry("The forestry office.", question=QUESTION)
    other = make_entry(
        "The town hall.", question=QUESTION, state="in_review", confidence=0.9
    )
    find_entry_conflicts(other.pk)
    decide_with(unverified_floor=0.75)
    user = make_user(Role.AGENT)

    answer = ask(QUESTION, asker=user, channel=Answer.Channel.PAGE)
    client.force_login(user)
    page = client.get(f"/answers/{answer.pk}").content.decode()

    assert answer.text == "The forestry office."
    assert "Sources disagree" in page
    assert "The town hall." in page
    assert "The verified one counts" in page


def test_what_nobody_verified_says_nothing_against_an_answer_by_default():
    make_entry("The forestry office.", question=QUESTION)
    other = make_entry(
        "The town hall.", question=QUESTION, state="in_review", confidence=0.9
    )
    find_entry_conflicts(other.pk)

    answer = ask(QUESTION, asker=make_user(), channel=Answer.Channel.API)

    assert (answer.text, answer.contradictions) == ("The forestry office.", [])


def test_the_page_of_the_answer_shows_both_quotes_and_the_gate(conflict, client):
    user = make_user(Role.AGENT)
    answer = ask(QUESTION, asker=user, channel=Answer.Channel.PAGE)
    client.force_login(user)

    page = client.get(f"/answers/{answer.pk}").content.decode()

    assert "Sources disagree" in page
    assert "<blockquote" in page
    assert "The forestry office." in page
    assert "The town hall." in page
    assert "Do the sources agree with each other?" in page


def test_a_quote_is_withheld_from_who_may_not_see_its_entry(conflict, client):
    answer = ask(QUESTION, asker=make_user(), channel=Answer.Channel.PAGE)
    entry = conflict.second
    entry.audience = make_audience("board", groups=["board"])
    entry.save()
    reviewer = make_user(Role.SME)
    client.force_login(reviewer)

    page = client.get(f"/answers/{answer.pk}").content.decode()

    assert "You do not have access to this entry." in page
    assert "The town hall." not in page
