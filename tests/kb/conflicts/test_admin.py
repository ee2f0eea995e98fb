import re

import pytest

from accounts.roles import Role
from jobs.models import Job
from kb.conflicts.admin import marked
from kb.conflicts.finding import find_entry_conflicts
from kb.models import Conflict, Entry
from kb.upkeep.conflict_resolution import keep_both
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
)

pytestmark = pytest.mark.django_db

FIVE = "The Savings account costs 5 euros a month."
SEVEN = "The Savings account costs 7 euros a month."
LIST = "/admin/kb/conflict/"


@pytest.fixture
def conflict():
    make_entry(FIVE)
    (found,) = find_entry_conflicts(make_entry(SEVEN).pk)
    return found


def page_of(conflict) -> str:
    return f"{LIST}{conflict.pk}/change/"


def test_the_list_shows_what_is_open(curator, conflict):
    page = curator.get(LIST, follow=True).content.decode()

    assert FIVE in page
    assert SEVEN in page


def test_all_of_the_filter_shows_what_is_decided_too(curator, conflict):
    keep_both(conflict_id=conflict.pk, by=curator.user, reason="Both.")

    opened = curator.get(LIST, follow=True)
    links = re.findall(r'href="(\?[^"]*state__exact=)"', opened.content.decode())
    page = curator.get(f"{LIST}{links[0]}")

    assert FIVE not in opened.content.decode()
    assert FIVE in page.content.decode()
    assert page.context["cl"].result_count == 1


def test_the_page_marks_what_clashes_side_by_side(curator, conflict):
    page = curator.get(page_of(conflict)).content.decode()

    assert ">5 euros</mark>" in page
    assert ">7 euros</mark>" in page
    assert "by curator" in page
    assert 'for="reason"' in page


def test_a_button_resolves(curator, conflict):
    body = {"resolution": f"override {conflict.second_id}", "reason": "New list."}

    answer = curator.post(page_of(conflict), body)

    conflict.refresh_from_db()
    assert answer.status_code == 302
    assert conflict.state == Conflict.State.OVERRIDDEN
    assert conflict.first.state == Entry.State.NEEDS_REVIEW


def test_the_reason_comes_before_the_buttons_and_enter_presses_none(curator, conflict):
    page = curator.get(page_of(conflict)).content.decode()

    first_button = page.index('name="resolution"')
    assert page.index('name="reason"') < first_button
    assert '<button type="submit" disabled hidden>' in page[:first_button]


def test_a_missing_reason_is_told_and_what_was_typed_stays(curator, conflict):
    answer = curator.post(page_of(conflict), {"resolution": "keep_both"})

    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    conflict.refresh_from_db()
    assert conflict.state == Conflict.State.OPEN


def test_an_expert_sees_it_and_has_no_buttons(client, conflict):
    expert = make_staff(Role.SME)
    client.force_login(expert)

    page = client.get(page_of(conflict)).content.decode()
    client.post(page_of(conflict), {"resolution": "keep_both", "reason": "Both."})

    conflict.refresh_from_db()
    assert 'name="resolution"' not in page
    assert conflict.state == Conflict.State.OPEN


def test_a_conflict_with_an_unseen_entry_has_no_page(curator):
    make_entry(FIVE, audience=make_audience("board", groups=["board"]))
    (conflict,) = find_entry_conflicts(make_entry(SEVEN).pk)

    assert curator.get(page_of(conflict)).status_code in (302, 404)
    assert SEVEN not in curator.get(LIST, follow=True).content.decode()


def test_saving_in_the_admin_links_to_the_conflict(curator):
    make_entry(FIVE)

    page = curator.post(
        "/admin/kb/entry/add/",
        {
            "knowledge_base": make_knowledge_base().pk,
            "audience": make_audience().pk,
            "text": SEVEN,
            "state": "verified",
            "origin": "manual",
            "language": "en",
        }
        | {
            "revisions-TOTAL_FORMS": "0",
            "revisions-INITIAL_FORMS": "0",
        },
        follow=True,
    ).content.decode()

    conflict = Conflict.objects.get()
    assert f"/admin/kb/conflict/{conflict.pk}/change/" in page
    assert Entry.objects.get(text=SEVEN).state == Entry.State.NEEDS_REVIEW


def test_overlapping_marks_are_one():
    reasons = [
        {"first": {"start": 0, "end": 3}, "second": None},
        {"first": {"start": 1, "end": 2}, "second": None},
    ]

    pieces = marked("abcdef", reasons, "first")

    assert [(piece.text, piece.clashes) for piece in pieces] == [
        ("abc", True), ("def", False),
    ]  # fmt: skip


def test_a_button_lets_everything_that_changed_be_compared_once(curator):
    curator.post(f"{LIST}check_now/")
    page = curator.post(f"{LIST}check_now/", follow=True).content.decode()

    assert "The comparison has begun" in page

    job = Job.objects.get(kind="kb.find_conflicts")
    assert f"/admin/jobs/job/{job.pk}/change/" in page


def test_who_does_not_see_all_entries_is_not_told_how_many_are_compared(curator):
    make_audience("board", groups=["board"])

    page = curator.post(f"{LIST}check_now/", follow=True).content.decode()

    assert "The comparison has begun" in page
    assert "/admin/jobs/job/" not in page.partition("has begun")[2].partition("</")[0]
    assert Job.objects.get(kind="kb.find_conflicts").owner is None


def test_a_button_of_an_entry_lets_it_be_compared(curator):
    entry = make_entry(FIVE)
    address = f"/admin/kb/entry/{entry.pk}/check_conflicts/"

    assert "Compare this entry" in curator.get(address).content.decode()
    assert not Job.objects.exists()
    page = curator.post(address, follow=True).content.decode()

    assert "The comparison has begun" in page
    assert Job.objects.get().parameters == {"entries": [entry.pk]}
