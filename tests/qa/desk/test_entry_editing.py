"""Editing an entry on its own page."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from accounts.models import KnowledgeRole
from accounts.roles import Role
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry, verify_entry
from kb.models import Conflict, Entry
from tests.clients import page_client
from tests.factories import (
    make_curator,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
)

pytestmark = pytest.mark.django_db

LIVE = {"HX-Request": "true"}


@pytest.fixture
def carla():
    return make_user(Role.CURATOR, username="carla")


@pytest.fixture
def page(carla):
    return page_client(carla)


def address(entry):
    return reverse("entry-edit", args=[entry.pk])


def typed(entry, **changes):
    """Return what the form of an entry sends, with these changes."""
    until = entry.valid_until
    return {
        "question": entry.question,
        "text": entry.text,
        "valid_until": f"{timezone.localtime(until):%Y-%m-%d}" if until else "",
        "product_line": entry.product_line_id or "",
        "line_of_business": entry.line_of_business_id or "",
        "reason": "",
        "revision": entry.revisions.count(),
        **changes,
    }


def test_what_is_typed_is_saved_as_the_next_revision_verified_by_who_typed(page, carla):
    gold = make_tag("gold-card")
    entry = make_entry("The gold card costs 72 euros.", verified_by=make_curator())

    assert "verified by you" in page.get(address(entry)).content.decode()
    sent = typed(
        entry,
        text="The gold card costs 80 euros.\r\nPer year.",
        question="What does the gold card cost?",
        valid_until="2099-12-31",
        product_line=gold.pk,
        reason="Prices of May.",
    )
    saved = page.post(address(entry), sent, follow=True)

    entry.refresh_from_db()
    assert entry.text == "The gold card costs 80 euros.\nPer year."
    assert entry.question == "What does the gold card cost?"
    assert (
        timezone.localtime(entry.valid_until).isoformat()[:19] == "2099-12-31T23:59:59"
    )
    assert (entry.product_line, entry.verified_by) == (gold, carla)
    newest = entry.revisions.get(number=2)
    assert (newest.author, newest.reason) == (carla, "Prices of May.")
    body = saved.content.decode()
    assert "Saved." in body
    assert "Per year." in body


def test_new_tags_alone_leave_the_verification_and_the_time_of_day_as_they_are(page):
    until = timezone.now() + timedelta(days=40)
    entry = make_entry(valid_until=until)
    verifier = entry.verified_by

    page.post(address(entry), typed(entry, product_line=make_tag().pk))

    entry.refresh_from_db()
    assert (entry.verified_by, entry.valid_until) == (verifier, until)
    assert entry.revisions.count() == 2


def test_what_is_saved_unchanged_writes_nothing(page):
    entry = make_entry("One.\nTwo.")

    saved = page.post(address(entry), typed(entry, text="One.\r\nTwo."), follow=True)

    assert "Nothing was changed." in saved.content.decode()
    assert entry.revisions.count() == 1


def test_an_unverified_entry_stays_so_and_the_form_says_it(page):
    entry = make_entry(state="needs_review")

    body = page.get(address(entry)).content.decode()
    page.post(address(entry), typed(entry, text="It costs 13 euros."))

    entry.refresh_from_db()
    assert "keeps its state, needs review" in body
    assert (entry.state, entry.text) == ("needs_review", "It costs 13 euros.")


def test_new_words_that_contradict_a_verified_entry_go_to_review(page):
    make_entry("The Gold card costs 72 euros a year.")
    entry = make_entry("The Gold card is free of charge for students.")

    saved = page.post(
        address(entry),
        typed(entry, text="The Gold card costs 80 euros a year."),
        headers=LIVE,
    )

    body = saved.content.decode()
    entry.refresh_from_db()
    assert entry.state == Entry.State.NEEDS_REVIEW
    assert "it is not verified any more" in body
    assert Conflict.objects.open().count() == 1


@pytest.mark.parametrize("is_live", [True, False])
def test_what_somebody_else_saved_meanwhile_is_shown_beside_what_was_typed(
    page, is_live
):
    entry = make_entry("The card costs 72 euros a year.")
    opened = typed(entry, text="The card costs 80 euros per year.")
    ada = make_curator()
    ada.first_name, ada.last_name = "Ada", "Byron"
    ada.save()
    gold = make_tag("gold-card")
    edit_entry(
        entry_id=entry.pk,
        author=ada,
        may_verify=True,
        text="The card costs 75 euros a year.",
        product_line=gold,
        reason="New list.",
    )

    headers = LIVE if is_live else {}
    refused = page.post(address(entry), opened, headers=headers)

    body = refused.content.decode()
    assert refused.status_code == (422 if is_live else 409)
    assert "Ada Byron saved this entry while you were editing it" in body
    assert "New list." in body
    assert "costs <mark>75 </mark>euros <mark>a </mark>year." in body
    assert "The card costs 80 euros per year.</textarea>" in body
    assert entry.revisions.count() == 2

    # Saved again, what was typed is kept, and the tag that somebody else gave it.
    form = refused.context["form"]
    assert re.search(r'name="revision" value="2"', body)
    page.post(address(entry), form.data)
    entry.refresh_from_db()
    assert entry.text == "The card costs 80 euros per year."
    assert entry.product_line == gold
    assert entry.revisions.count() == 3


def test_what_was_verified_meanwhile_alone_is_said_too(page):
    entry = make_entry()
    opened = typed(entry, text="It costs 13 euros.")
    verify_entry(entry_id=entry.pk, by=make_curator())

    refused = page.post(address(entry), opened)

    assert "Verified again." in refused.content.decode()
    assert entry.revisions.count() == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": " "}, "This field is required."),
        ({"text": "x" * 8_001}, "may have 8000"),
        ({"question": "x" * 1_001}, "may have 1000"),
        ({"question": "A\x07?"}, "U+0007"),
        ({"valid_until": "2020-01-01"}, "2020-01-01 has passed"),
        ({"valid_until": "soon"}, "Enter a valid date."),
        ({"product_line": "0"}, "not one of the available choices"),
        ({"reason": "x" * 301}, "at most 300"),
        ({"revision": "x"}, "Enter a whole number."),
    ],
)
def test_an_error_is_said_in_the_form_with_what_was_typed(page, changes, said):
    entry = make_entry()

    refused = page.post(
        address(entry),
        typed(entry, **{"question": "How much is it?", **changes}),
        headers=LIVE,
    )

    body = refused.content.decode()
    assert refused.status_code == 422
    assert said in body
    if "question" not in changes:
        assert 'value="How much is it?"' in body
    assert entry.revisions.count() == 1


def test_the_day_of_what_is_contradicted_waits_for_the_decision(page):
    entry, other = make_entry("It costs 72 euros."), make_entry("It costs 80 euros.")
    first, second = sorted((entry.pk, other.pk))
    Conflict.objects.get_or_create(
        first_id=first,
        second_id=second,
        defaults={
            "first_revision": 1, "second_revision": 1, "texts_sha256": "0" * 64,
            "kind": Conflict.Kind.CONTRADICTION, "score": 0.9, "distance": 0.1,
            "model": "test",
        },
    )  # fmt: skip

    refused = page.post(address(entry), typed(entry, valid_until="2099-12-31"))

    assert refused.status_code == 409
    assert "decide conflict" in refused.content.decode()
    assert entry.revisions.count() == 1


@pytest.mark.parametrize("state", ["draft", "in_review", "needs_review"])
def test_what_nobody_verified_is_verified_on_its_page_and_undone(page, state):
    entry = make_entry("Gold costs 72 euros.", state=state)
    own = reverse("entry", args=[entry.pk])
    path = reverse("entry-still-true", args=[entry.pk])
    assert ">Verify</button>" in page.get(own).content.decode()

    after = page.post(path, {"revision": 1}, follow=True).content.decode()

    entry.refresh_from_db()
    assert entry.state == Entry.State.VERIFIED
    assert "Undo</button>" in after
    assert path not in after  # it is not due
    assert reverse("admin:kb_entry_history", args=[entry.pk]) not in after  # no staff


def test_a_retired_entry_is_not_edited(page):
    entry = make_entry()
    opened = typed(entry, text="It costs 13 euros.")
    retire_entry(entry_id=entry.pk, by=make_curator())

    body = page.get(address(entry), follow=True).content.decode()
    refused = page.post(address(entry), opened | {"revision": 2})

    assert "entry-form" not in body
    assert refused.status_code == 409
    assert "restore it first" in refused.content.decode()
    assert "It costs 13 euros.</textarea>" in refused.content.decode()


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME])
def test_who_may_not_change_it_sees_no_button_and_is_refused(role):
    entry = make_entry()
    reader = page_client(make_user(role))

    body = reader.get(reverse("entry", args=[entry.pk])).content.decode()

    assert "data-edits" not in body
    assert reader.get(address(entry)).status_code == 403
    assert reader.post(address(entry), typed(entry, text="No.")).status_code == 403
    assert entry.revisions.count() == 1


def test_a_curator_of_another_knowledge_base_is_refused():
    entry = make_entry()
    elsewhere = make_user(Role.AGENT)
    KnowledgeRole.objects.create(
        user=elsewhere, role=Role.CURATOR, knowledge_base=make_knowledge_base("loans")
    )
    reader = page_client(elsewhere)

    assert reader.get(address(entry)).status_code == 403
    assert reader.post(address(entry), typed(entry, text="No.")).status_code == 403


def test_the_form_costs_no_more_queries_than_the_page_and_its_tags(
    page, django_assert_max_num_queries
):
    for number in range(5):
        make_tag(f"card-{number}")
    entry = make_entry()

    with django_assert_max_num_queries(24):
        page.get(reverse("entry", args=[entry.pk]))
    with django_assert_max_num_queries(26):
        page.get(address(entry), headers=LIVE)


DUE = "/admin/kb/entry/due?whose=all&reason=needs_review"


def from_due(entry, back=DUE, part=None):
    """Return the address of the form of an entry that is edited under Due for review."""
    named = {"back": back, "part": part or f"due-{entry.pk}"}
    return f"{address(entry)}?{urlencode(named)}"


def test_the_form_of_another_page_comes_alone_and_returns_there(page):
    entry = make_entry(state="needs_review")

    alone = page.get(from_due(entry), headers=LIVE).content.decode()
    whole = page.get(from_due(entry)).content.decode()
    refused = page.post(from_due(entry), typed(entry, text=""), headers=LIVE)
    saved = page.post(from_due(entry), typed(entry, text="It costs 13 euros."))

    assert "<h1>" not in alone
    assert "<h1>" in whole
    for body in (alone, whole, refused.content.decode()):
        assert f'href="{escape(DUE)}#edit-{entry.pk}"' in body
        assert f'action="{escape(from_due(entry))}"' in body
    assert refused.status_code == 422
    assert "<h1>" not in refused.content.decode()
    assert saved["Location"] == DUE


def test_what_is_saved_for_another_page_is_said_there_and_its_part_read_again(page):
    entry = make_entry(state="needs_review")

    saved = page.post(
        from_due(entry), typed(entry, text="It costs 13 euros."), headers=LIVE
    )
    body = saved.content.decode()
    token = re.search(r'name="undo" value="([^"]+)"', body)
    assert token is not None
    undone = page.post(reverse("undo"), {"undo": token[1]})

    assert "Saved." in body
    assert f'hx-get="{escape(DUE)}"' in body
    assert f'hx-select="#due-{entry.pk}"' in body
    assert saved["HX-Retarget"] == f"#due-{entry.pk}"
    assert saved["HX-Reswap"] == "beforebegin"
    assert undone["Location"] == DUE
    assert Entry.objects.get().text == entry.text


def test_what_was_retired_meanwhile_is_said_on_the_other_page(page):
    entry = make_entry()
    retire_entry(entry_id=entry.pk, by=make_curator())

    said = page.get(from_due(entry), headers=LIVE)

    assert f"Entry {entry.pk} is retired; restore it first." in said.content.decode()
    assert said["HX-Retarget"] == f"#due-{entry.pk}"
    assert page.get(from_due(entry))["Location"] == DUE


@pytest.mark.parametrize(
    ("back", "part"),
    [
        ("https://elsewhere.example/", "due-1"),
        ("//elsewhere.example/", "due-1"),
        ("/\\elsewhere.example/", "due-1"),
        ("javascript:alert(1)", "due-1"),
        ("admin/", "due-1"),
        (DUE, "due-1, body"),
        (DUE, '"><script>'),
        (DUE, "\0"),
    ],
)
def test_it_returns_to_no_other_site_and_no_made_up_part(page, back, part):
    entry = make_entry()
    elsewhere = from_due(entry, back, part)

    form = page.get(elsewhere, headers=LIVE).content.decode()
    saved = page.post(elsewhere, typed(entry, text="It costs 13 euros."))

    assert "elsewhere" not in form
    assert "<script>" not in form
    assert 'hx-select="#entry-said"' in form
    assert saved["Location"] == reverse("entry", args=[entry.pk])
