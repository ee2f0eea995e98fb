"""Gaps in the admin and over REST."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.wordings import add_wordings
from qa.gaps import finding as gap_finding
from qa.gaps.near_entries import entries_saying
from qa.gaps.services import link
from qa.models import Gap, Repeat
from qa.votes.services import vote
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entries,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "What does a wire transfer cost?"


def make_gaps(*questions: str) -> Gap:
    """Find a gap for each question; return that of the first."""
    asker = make_user()
    for question in questions:
        make_answer(asker, question=question, decided_at=timezone.now())
    job = enqueue(gap_finding.KIND, {})
    run_job(job.pk, {gap_finding.KIND: gap_finding.find_gaps})
    return Gap.objects.get(question=questions[0])


def test_the_dashboard_leads_to_the_gaps_that_matter_most(client):
    gap = make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))

    page = client.get(reverse("dashboard")).content.decode()

    assert f'href="{reverse("admin:qa_gap_change", args=[gap.pk])}"' in page
    assert f'href="{reverse("admin:qa_gap_changelist")}">1 open gap</a>' in page


def test_the_list_shows_open_gaps_the_most_missed_first(client):
    make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))
    address = reverse("admin:qa_gap_changelist")
    assert client.get(address)["Location"] == f"{address}?state__exact=open"
    client.get(f"{address}?state__exact=open")
    with CaptureQueriesContext(connection) as of_one:
        client.get(f"{address}?state__exact=open")

    make_gaps("Who won the chess game?", "How old does a cat get?")
    with CaptureQueriesContext(connection) as of_three:
        shown = client.get(f"{address}?state__exact=open").content.decode()

    assert "Who won the chess game?" in shown
    assert "once by 1 person" in shown
    assert "1 ▲ 0 before" in shown
    assert shown.count(f">{Gap.objects.latest('pk').knowledge_base.name}<") >= 3
    assert len(of_three) == len(of_one)


def test_an_expert_drafts_an_answer_and_a_thumb_down_has_said_it_already(client):
    asker = make_user()
    answer = make_answer(asker, question=QUESTION, cited=(make_entry(),))
    vote(answer.pk, user=asker, is_up=False, expected_answer="It costs 5 <euros>.")
    gap = make_gaps(QUESTION)
    address = reverse("admin:qa_gap_change", args=[gap.pk])
    client.force_login(make_staff(Role.SME))

    page = client.get(address).content.decode()
    assert "It costs 5 &lt;euros&gt;." in page
    assert "voted down" in page
    assert "verify" not in page.split("Fill it")[1].split("Nearest")[0]

    given = {"how": "draft", "asked": QUESTION, "said": "It costs 5 euros."}
    given["audience"] = str(make_audience().pk)
    saved = client.post(address, given, follow=True).content.decode()

    gap.refresh_from_db()
    assert gap.entry is not None
    assert f"entry {gap.entry_id}</a>. Once a curator has verified it" in saved
    assert (gap.state, gap.entry.text) == ("drafted", "It costs 5 euros.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"how": "draft", "said": " "}, "The answer is empty"),
        ({"how": "draft", "said": "5", "audience": ""}, "Choose the audience"),
        ({"how": "link"}, "Choose an entry, or find others by words."),
        ({"how": "link", "entry": "4711"}, "Select a valid choice"),
        ({"how": "link", "entry": "four"}, "Select a valid choice"),
        ({"how": "link", "words": "zebra"}, "No entry is found for “zebra”"),
        ({"how": "dismiss", "said": ""}, "The reason is empty"),
        ({"how": "propose"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_changes(client, given, said):
    gap = make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))
    given = {"audience": make_audience().pk, **given}

    page = client.post(reverse("admin:qa_gap_change", args=[gap.pk]), given)

    assert said in page.content.decode()
    gap.refresh_from_db()
    assert gap.state == "open"


def test_a_gap_is_filled_by_an_entry_that_is_chosen_and_no_number_is_typed(client):
    gap = make_gaps(QUESTION)
    near = make_entry("It costs 5 <euros>.", question="How much is a wire transfer?")
    hidden = make_entry(
        "A wire transfer is free.", audience=make_audience("vault", groups=["vault"])
    )
    elsewhere = make_entry(
        "A wire transfer costs 9.", knowledge_base=make_knowledge_base("loans")
    )
    client.force_login(make_staff(Role.SME))
    address = reverse("admin:qa_gap_change", args=[gap.pk])

    page = client.get(address).content.decode()
    refused = client.post(address, {"how": "link", "entry": hidden.pk})
    linked = client.post(address, {"how": "link", "entry": near.pk}, follow=True)

    assert f"entry {near.pk}</a> to answer it." in linked.content.decode()
    assert f'name="entry" value="{near.pk}"' in page
    assert "How much is a wire transfer? It costs 5 &lt;euros&gt;. (verified)" in page
    for unseen in (hidden, elsewhere):
        assert f'name="entry" value="{unseen.pk}"' not in page
        assert unseen.text not in page
    assert "Select a valid choice" in refused.content.decode()
    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("drafted", near)


def test_a_gap_that_waits_for_a_review_is_dismissed_or_reopened_and_not_filled(client):
    gap, entry = make_gaps(QUESTION), make_entry()
    client.force_login(expert := make_staff(Role.SME))
    link(gap.pk, by=expert, entry_id=entry.pk)
    address = reverse("admin:qa_gap_change", args=[gap.pk])

    page = client.get(address).content.decode()
    late = client.post(address, {"how": "link", "entry": entry.pk}).content.decode()

    assert "Fill it" not in page
    assert re.findall(r'name="how" value="(\w+)"', page) == ["dismiss"]
    assert page.count("already waits for review") == 1
    assert late.count("already waits for review") == 2  # also as an error
    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("drafted", entry)
    client.post(address, {"how": "dismiss", "said": "We are a bank."})
    gap.refresh_from_db()
    assert (gap.state, gap.reason) == ("dismissed", "We are a bank.")


def chosen_beside_a_refusal(entry, *, by):
    """Let `by` say that an entry answers their refused question; return its gap."""
    refused = make_answer(
        by, question=QUESTION, near_misses=(entry,), decided_at=timezone.now()
    )
    vote(refused.pk, user=by, is_up=False, answering_entry_id=entry.pk)
    return refused


def nearest_rows(page: str) -> str:
    return page.split("Nearest entries")[1].split("Its newest questions")[0]


def test_the_entry_that_agents_chose_is_first_and_chosen_and_linked_by_one_press(
    client,
):
    near = make_entry(QUESTION.replace("What does", "That is what"), question="")
    chosen = make_entry("It costs 5 <euros>.", question="Is the lounge open?")
    agent = make_user(username="abel")
    chosen_beside_a_refusal(chosen, by=agent)
    gap = make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))
    address = reverse("admin:qa_gap_change", args=[gap.pk])

    page = client.get(address).content.decode()
    given = {"how": "link", "entry": chosen.pk}
    linked = client.post(address, given, follow=True).content.decode()

    rows = nearest_rows(page)
    assert rows.index("It costs 5 &lt;euros&gt;.") < rows.index("That is what")
    assert "abel" in rows
    assert "(verified, chosen by abel)" in page
    assert page.count(f'name="entry" value="{chosen.pk}"') == 1
    assert re.search(rf'name="entry" value="{chosen.pk}"[^>]* checked[ >]', page)
    assert re.search('name="how" value="link"[^>]* checked[ >]', page)
    assert not re.search(rf'name="entry" value="{near.pk}"[^>]* checked[ >]', page)
    assert f"entry {chosen.pk}</a> to answer it." in linked


def test_a_gap_is_dismissed_with_the_entry_that_agents_chose_left_chosen(client):
    chosen = make_entry()
    chosen_beside_a_refusal(chosen, by=make_user())
    gap = make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))

    given = {"how": "dismiss", "said": "Ask the bank.", "entry": chosen.pk}
    client.post(reverse("admin:qa_gap_change", args=[gap.pk]), given)

    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("dismissed", None)


def test_of_two_entries_that_agents_chose_neither_is_chosen_for_the_curator(client):
    first, second = make_entry("It costs 5."), make_entry("It costs 6.")
    for name, entry in (("abel", first), ("bea", second), ("cleo", second)):
        chosen_beside_a_refusal(entry, by=make_user(username=name))
    gap = make_gaps(QUESTION)
    client.force_login(make_staff(Role.SME))

    page = client.get(reverse("admin:qa_gap_change", args=[gap.pk])).content.decode()

    rows = nearest_rows(page)
    assert rows.index("It costs 6.") < rows.index("It costs 5.")
    assert not re.search(r'name="entry" value="\d+"[^>]* checked[ >]', page)


def test_an_entry_that_an_expert_may_not_see_is_not_shown_as_chosen(client):
    hidden = make_entry("The board pays 3.")
    chosen_beside_a_refusal(hidden, by=make_user(username="abel"))
    gap = make_gaps(QUESTION)
    type(hidden).objects.update(audience=make_audience("vault", groups=["vault"]))
    client.force_login(make_staff(Role.SME))

    page = client.get(reverse("admin:qa_gap_change", args=[gap.pk])).content.decode()

    assert "The board pays 3." not in page
    assert "chosen by abel" not in page


def test_of_the_same_words_of_one_person_it_is_said_that_one_was_asked_again(client):
    asker = make_user()
    first = make_answer(asker, question=QUESTION, decided_at=timezone.now())
    make_answer(asker, question=QUESTION.upper(), decided_at=timezone.now())
    gap = make_gaps(QUESTION)
    again = make_answer(asker, question=QUESTION, channel="repeat")
    Repeat.objects.create(before=first, after=again, gap=gap, is_better=False)
    client.force_login(make_staff(Role.SME))

    page = client.get(reverse("admin:qa_gap_change", args=[gap.pk])).content.decode()

    assert page.count("the same question by the same person was asked again") == 1
    assert page.count("not asked again yet") == 1  # of somebody else


def test_the_list_of_votes_names_the_entry_that_was_chosen(client):
    chosen = make_entry("It costs 5.")
    chosen_beside_a_refusal(chosen, by=make_user())
    client.force_login(make_staff(Role.SME))

    page = client.get(reverse("admin:qa_vote_changelist")).content.decode()

    assert f">entry {chosen.pk}</a>" in page


def test_a_word_that_no_entry_uses_leads_curators_to_its_synonym(client):
    make_entry("A bank transfer costs 5 euros.")
    gap = make_gaps(QUESTION)
    address = reverse("admin:qa_gap_change", args=[gap.pk])
    form = (
        f"/admin/kb/synonym/add/?knowledge_base={gap.knowledge_base_id}&amp;word=wire"
    )

    client.force_login(make_staff(Role.SME))
    assert form not in client.get(address).content.decode()
    client.force_login(make_staff(Role.CURATOR))
    assert f'href="{form}">wire</a>' in client.get(address).content.decode()
    opened = client.get(form.replace("&amp;", "&")).content.decode()

    assert 'name="word" value="wire"' in opened


def test_entries_far_from_a_gap_are_found_by_words(client):
    gap = make_gaps(QUESTION)
    make_entries([f"A wire transfer takes {days} days." for days in range(2, 9)])
    far = make_entry("Our lounge opens at nine.")
    vault = make_audience("vault", groups=["vault"])
    hidden = make_entry("The lounge of the board opens at six.", audience=vault)
    client.force_login(make_staff(Role.SME))
    address = reverse("admin:qa_gap_change", args=[gap.pk])
    given = {"how": "link", "words": "lounge"}

    first = client.get(address).content.decode()
    found = client.post(address, given).content.decode()
    client.post(address, {**given, "entry": far.pk})

    assert f'name="entry" value="{far.pk}"' not in first
    assert f'name="entry" value="{far.pk}"' in found
    assert "Choose one of those found for “lounge”." in found
    assert f'name="entry" value="{hidden.pk}"' not in found
    assert hidden.text not in found
    gap.refresh_from_db()
    assert gap.entry == far


def test_an_entry_also_asked_in_these_words_is_found_beside_many_that_have_them():
    make_entries([f"The loan period of floor {n} is {n} weeks." for n in range(2, 14)])
    meant, curator = make_entry("You may keep a book for three weeks."), make_curator()
    add_wordings(meant, ["loan period"], by=curator)

    found = entries_saying("loan period", meant.knowledge_base, [curator])

    assert meant in found
    assert len(found) == 10


def test_gaps_are_taken_given_back_and_reopened_in_bulk(client):
    gap = make_gaps(QUESTION)
    user = make_staff(Role.SME)
    client.force_login(user)
    address = reverse("admin:qa_gap_changelist") + "?state__exact=open"

    def act(name: str) -> None:
        client.post(address, {"action": name, "_selected_action": [gap.pk]})
        gap.refresh_from_db()

    act("assign_to_me")
    assert gap.owner == user
    act("unassign")
    assert gap.owner is None


def test_rest_lists_reads_drafts_and_reopens():
    gap = make_gaps(QUESTION, "Who won the chess game?")
    client = rest_client(make_user(Role.SME))
    address = f"/api/v1/gaps/{gap.pk}"

    listed = client.get("/api/v1/gaps?state=open&page_size=1").json()
    assert (len(listed["results"]), listed["next"] is not None) == (1, True)
    following = client.get(listed["next"]).json()["results"]
    assert {each["question"] for each in (*listed["results"], *following)} == {
        QUESTION, "Who won the chess game?",
    }  # fmt: skip

    read = client.get(address).json()
    assert (read["questions"], read["impact"]) == (1, 1.0)
    assert [each["question"] for each in read["tried"]] == [QUESTION]
    assert read["tried"][0]["after"] is None

    audience = make_audience().slug
    body = {"text": "5 euros.", "audience": audience}
    drafted = client.post(f"{address}/draft", body, format="json").json()
    assert (drafted["state"], drafted["entry"] is not None) == ("drafted", True)
    reopened = client.post(f"{address}/reopen").json()
    assert (reopened["state"], reopened["entry"]) == ("open", None)


def test_rest_says_what_is_wrong():
    gap = make_gaps(QUESTION)
    client = rest_client(make_user(Role.SME))
    address = f"/api/v1/gaps/{gap.pk}"

    for path, body, status in (
        ("dismiss", {"reason": "x"}, 200),
        ("dismiss", {"reason": "x"}, 409),
        ("link", {"entry": 4711}, 409),
        ("reopen", {}, 200),
        ("link", {"entry": 4711}, 400),
        ("draft", {"text": "5", "audience": "nobody"}, 400),
        ("draft", {"text": "5", "audience": make_audience().slug, "verify": True}, 400),
        ("propose", {"audience": make_audience().slug}, 403),
    ):
        got = client.post(f"{address}/{path}", body, format="json")
        assert got.status_code == status, (path, got.content)
    assert client.put(f"{address}/owner", {"owner": None}, format="json").status_code == 200  # fmt: skip
    assert client.put(f"{address}/owner", {"owner": ""}, format="json").status_code == 400  # fmt: skip
    assert client.get("/api/v1/gaps/999").status_code == 404
    assert client.get("/api/v1/gaps?state=none").status_code == 400
    assert client.get("/api/v1/gaps?knowledge_base=nope").status_code == 400
    assert rest_client(make_user(Role.AGENT)).get("/api/v1/gaps").status_code == 403


def test_a_gap_is_taken_from_another_on_purpose_alone():
    ann, ben, caspar = (make_user(Role.SME, username=name) for name in "abc")
    address = f"/api/v1/gaps/{make_gaps(QUESTION).pk}/owner"

    def put(by, owner, **more: object):
        return rest_client(by).put(
            address, {"owner": owner and owner.username, **more}, format="json"
        )

    assert put(ann, ann).json()["owner"] == "a"
    refused = put(ben, ben)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "assigned_elsewhere"
    assert put(ben, ben, take_over=True).json()["owner"] == "b"
    assert put(ann, caspar).json()["owner"] == "c"  # who hands it out says to whom
    assert put(ann, None).json()["owner"] is None


def test_an_answer_from_what_the_expert_may_not_see_is_withheld():
    vault = make_audience("vault", groups=["vault"])
    hidden = make_entry("The limit is 900 euros.", audience=vault)
    gap = make_gaps(QUESTION)
    before = gap.members.get().answer
    insider = make_user(groups=["vault"])
    after = make_answer(insider, cited=(hidden,), text="900 euros.", channel="repeat")
    Repeat.objects.create(before=before, after=after, gap=gap, is_better=True)

    (tried,) = (
        rest_client(make_user(Role.SME)).get(f"/api/v1/gaps/{gap.pk}").json()["tried"]
    )

    assert "900" not in tried["after"]
    assert tried["new_answer"] == str(after.pk)


def test_reading_a_gap_takes_the_same_queries_however_many_asked(
    django_assert_num_queries,
):
    gap = make_gaps(QUESTION, QUESTION, QUESTION)
    client = rest_client(make_user(Role.SME))
    client.get(f"/api/v1/gaps/{gap.pk}")

    with django_assert_num_queries(10):
        client.get(f"/api/v1/gaps/{gap.pk}")


def test_an_owner_who_is_inactive_is_as_unknown_as_one_who_is_not_there():
    gap = make_gaps(QUESTION)
    idle, gone = make_user(Role.SME), make_user(Role.SME)
    type(gone).objects.filter(pk=gone.pk).update(is_active=False)
    client = rest_client(make_user(Role.SME))

    def asked(name: str):
        return client.get("/api/v1/gaps", {"owner": name})

    assert asked(idle.username).json()["results"] == []
    for name in ("nope", gone.username):
        assert asked(name).status_code == 400
        said = asked(name).json()["error"]["message"]
        assert said == f"owner: There is no active user {name!r}."
    Gap.objects.filter(pk=gap.pk).update(owner=gone)
    (found,) = asked(gone.username).json()["results"]
    assert found["id"] == gap.pk
