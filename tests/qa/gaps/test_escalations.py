"""From a refusal to an expert, and back as an answer and as knowledge."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from jobs.models import Job
from kb.models import Entry
from qa.answers.submitted_text import EntryOptions
from qa.exceptions import (
    AnswerNotFoundError,
    EscalationClosedError,
    EscalationExistsError,
    EscalationNotFoundError,
    InvalidEscalationError,
)
from qa.gaps.escalations import assign, close, escalate, mark_read, reply
from qa.gaps.repeats import due_escalations
from qa.models import Answer, Escalation
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def asker():
    return make_user()


@pytest.fixture
def refusal(asker):
    return make_answer(asker, question="What does a wire transfer cost?")


@pytest.fixture
def sent(refusal, asker):
    return escalate(refusal.pk, user=asker, note=" Mr Meier waits. ")


def test_a_refusal_is_sent_once_and_waits(sent, refusal, asker):
    assert (sent.state, sent.note) == ("open", "Mr Meier waits.")
    assert list(Escalation.objects.waiting()) == [sent]
    with pytest.raises(EscalationExistsError):
        escalate(refusal.pk, user=asker)


def test_only_the_asker_sends_it_and_only_once_it_is_decided(refusal, asker):
    failed = make_answer(asker, outcome="failed", gate="", reason="", text="")

    with pytest.raises(AnswerNotFoundError):
        escalate(refusal.pk, user=make_user(Role.SME))
    with pytest.raises(AnswerNotFoundError):
        escalate(uuid4(), user=asker)
    with pytest.raises(InvalidEscalationError, match="is failed, neither"):
        escalate(failed.pk, user=asker)
    with pytest.raises(InvalidEscalationError, match="2001 characters"):
        escalate(refusal.pk, user=asker, note="x" * 2_001)
    assert not Escalation.objects.exists()


def test_a_wrong_answer_is_sent_too(asker):
    answered = make_answer(asker, cited=(make_entry(),))

    sent = escalate(answered.pk, user=asker, note="It costs five.")

    assert list(Escalation.objects.waiting()) == [sent]


def test_a_reply_reaches_the_asker_and_waits_as_an_entry_for_review(
    sent, refusal, asker
):
    expert = make_user(Role.SME)

    done = reply(
        sent.pk, by=expert, text="Five euros.", keep=EntryOptions(make_audience())
    )

    entry = done.entry
    assert entry is not None
    assert (done.state, done.reply, done.replied_by) == ("answered", "Five euros.", expert)  # fmt: skip
    assert (entry.question, entry.text) == (refusal.question, "Five euros.")
    # It waits for every curator: the expert may not verify it.
    assert (entry.origin, entry.state, entry.owner) == ("review", "in_review", None)
    assert list(Escalation.objects.unread_by(asker)) == [done]
    mark_read(refusal, by=expert)
    assert Escalation.objects.unread_by(asker).exists()
    mark_read(refusal, by=asker)
    assert not Escalation.objects.unread_by(asker).exists()


def test_a_curator_may_vouch_for_it_at_once(sent):
    curator = make_user(Role.CURATOR)
    keep = EntryOptions(make_audience(), verify=True)

    with pytest.raises(InvalidEscalationError, match="Only curators verify"):
        reply(sent.pk, by=make_user(Role.SME), text="Five euros.", keep=keep)
    done = reply(sent.pk, by=curator, text="Five euros.", keep=keep)

    assert done.entry is not None
    assert (done.entry.state, done.entry.verified_by) == ("verified", curator)


def test_an_entry_that_is_there_is_the_reply_and_the_question_is_asked_again(
    sent, asker
):
    entry = make_entry("A wire transfer costs five euros.")

    done = reply(sent.pk, by=make_user(Role.SME), entry_id=entry.pk)

    assert (done.state, done.reply) == ("answered", entry.text)
    assert done.entry == entry
    assert Entry.objects.count() == 1
    assert list(Escalation.objects.unread_by(asker)) == [done]
    assert list(due_escalations()) == [done]
    assert Job.objects.filter(kind="qa.ask_again").count() == 1


def test_an_expert_may_say_an_entry_in_their_own_words(sent):
    entry = make_entry("A wire transfer costs five euros.")

    done = reply(sent.pk, by=make_user(Role.SME), text="Five.", entry_id=entry.pk)

    assert (done.reply, done.entry) == ("Five.", entry)


def test_what_would_answer_nobody_is_no_reply_and_the_message_says_what_to_do(sent):
    expert = make_user(Role.SME)
    retired = make_entry("One.", state="retired")
    waiting = make_entry("Two.", state="in_review")
    past = timezone.now() - timedelta(days=1)
    expired = make_entry("Three.")
    Entry.objects.filter(pk=expired.pk).update(valid_until=past)
    elsewhere = make_entry("Four.", knowledge_base=make_knowledge_base("loans"))
    entry = make_entry("Five.")

    for chosen, said in (
        (retired, "is retired; restore and verify it first"),
        (waiting, "is in review, not verified; have it verified first"),
        (expired, "has expired; renew it first"),
        (elsewhere, "There is no entry"),
    ):
        with pytest.raises(InvalidEscalationError, match=said):
            reply(sent.pk, by=expert, entry_id=chosen.pk)
    keep = EntryOptions(make_audience())
    with pytest.raises(InvalidEscalationError, match="leave out the entry or `keep`"):
        reply(sent.pk, by=expert, entry_id=entry.pk, keep=keep)
    with pytest.raises(InvalidEscalationError, match="The reply is empty"):
        reply(sent.pk, by=expert)
    sent.refresh_from_db()
    assert sent.is_open


def test_no_entry_is_passed_on_that_the_expert_or_the_asker_may_not_see(sent):
    vault = make_audience("vault", groups=["vault"])
    hidden = make_entry("The limit is 900 euros.", audience=vault)

    with pytest.raises(InvalidEscalationError, match=f"no entry {hidden.pk}"):
        reply(sent.pk, by=make_user(Role.SME), entry_id=hidden.pk)
    insider = make_user(Role.SME, groups=["vault"])
    with pytest.raises(InvalidEscalationError, match="The asker may not see"):
        reply(sent.pk, by=insider, entry_id=hidden.pk)


def test_an_end_without_an_answer_tells_why_and_becomes_no_entry(sent):
    done = close(sent.pk, by=make_user(Role.SME), reason="Ask the branch.")

    assert (done.state, done.reply) == ("closed", "Ask the branch.")
    assert not Entry.objects.exists()


def test_there_is_one_reply(sent):
    expert = make_user(Role.SME)
    reply(sent.pk, by=expert, text="Five euros.")

    for again in (
        lambda: reply(sent.pk, by=expert, text="Six."),
        lambda: close(sent.pk, by=expert, reason="No."),
        lambda: assign(sent.pk, to=expert, by=expert),
    ):
        with pytest.raises(EscalationClosedError):
            again()


def test_who_is_no_expert_finds_none_to_reply_to(sent, asker):
    with pytest.raises(EscalationNotFoundError):
        reply(sent.pk, by=asker, text="Five euros.")
    with pytest.raises(EscalationNotFoundError):
        reply(4711, by=make_user(Role.SME), text="Five euros.")


def test_an_expert_takes_it_and_gives_it_back(sent):
    expert = make_user(Role.SME)

    assert assign(sent.pk, to=expert, by=expert).assignee == expert
    assert assign(sent.pk, to=None, by=expert).assignee is None


def test_over_rest_from_the_refusal_to_the_reply(refusal, asker):
    agent, expert = rest_client(asker), rest_client(make_user(Role.SME))
    make_audience()

    made = agent.post(
        f"/api/v1/answers/{refusal.pk}/escalate", {"note": "Now."}, format="json"
    )
    url = f"/api/v1/escalations/{made.json()['id']}"
    taken = expert.put(f"{url}/assignee")
    body = {"text": "Five euros.", "keep": {"audience": "everyone"}}
    done = expert.post(f"{url}/reply", body, format="json")
    read = agent.get(url)

    assert made.status_code == 201
    assert taken.json()["assignee"]
    assert (done.status_code, done.json()["state"]) == (200, "answered")
    assert read.json()["reply"] == "Five euros."
    assert read.json()["entry"] == Entry.objects.get().pk
    assert Escalation.objects.get().read_at is not None
    assert agent.post(f"/api/v1/answers/{refusal.pk}/escalate", {}, format="json").status_code == 409  # fmt: skip
    assert expert.post(f"{url}/close", {"reason": "No."}, format="json").status_code == 409  # fmt: skip


def test_an_escalation_is_taken_over_on_purpose_alone(sent, asker):
    ann, ben = make_user(Role.SME, username="ann"), make_user(Role.SME)
    url = f"/api/v1/escalations/{sent.pk}/assignee"
    assert rest_client(ann).put(url).status_code == 200

    other = rest_client(ben)
    refused = other.put(url)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "assigned_elsewhere"
    assert "assigned to ann" in refused.json()["error"]["message"]
    assert Escalation.objects.get().assignee == ann
    assert rest_client(ann).put(url).status_code == 200
    taken = other.put(url, {"take_over": True}, format="json")
    assert taken.json()["assignee"] == ben.username
    assert rest_client(asker).put(url, {"take_over": True}).status_code == 403


def test_who_is_deactivated_keeps_nobody_from_an_escalation(sent):
    ann = make_user(Role.SME)
    assign(sent.pk, to=ann, by=ann)
    ann.is_active = False
    ann.save()

    taken = rest_client(make_user(Role.SME)).put(
        f"/api/v1/escalations/{sent.pk}/assignee"
    )

    assert taken.status_code == 200


def test_escalations_are_found_by_the_answer_they_are_about(sent, refusal, asker):
    escalate(make_answer(asker).pk, user=asker)
    address = "/api/v1/escalations"

    found = rest_client(asker).get(address, {"answer": refusal.pk}).json()["results"]
    others = rest_client(make_user()).get(address, {"answer": refusal.pk})
    unreadable = rest_client(asker).get(address, {"answer": "x"})

    assert [each["id"] for each in found] == [sent.pk]
    assert others.json()["results"] == []
    assert unreadable.status_code == 400


def test_a_closed_one_says_why_and_an_answered_one_gives_no_reason(sent, asker):
    expert = rest_client(make_user(Role.SME))
    url = f"/api/v1/escalations/{sent.pk}"

    assert expert.get(url).json()["reason"] is None
    closed = expert.post(f"{url}/close", {"reason": "Ask the bank."}, format="json")
    assert closed.json()["reason"] == closed.json()["reply"] == "Ask the bank."
    other = escalate(make_answer(asker).pk, user=asker)
    reply(other.pk, by=make_user(Role.SME), text="Five euros.")
    shown = expert.get(f"/api/v1/escalations/{other.pk}").json()
    assert (shown["reply"], shown["reason"]) == ("Five euros.", None)


def test_an_audience_of_others_looks_like_none(sent):
    make_audience("board", groups=["board"])
    expert = rest_client(make_user(Role.SME))
    url = f"/api/v1/escalations/{sent.pk}/reply"

    answers = [
        expert.post(url, {"text": "5", "keep": {"audience": name}}, format="json")
        for name in ("board", "nobody")
    ]

    assert [response.status_code for response in answers] == [400, 400]
    first, second = (
        str(response.json()).replace(name, "NAME")
        for response, name in zip(answers, ("board", "nobody"), strict=True)
    )
    assert first == second


def test_another_agents_escalation_looks_like_none(sent):
    other = rest_client(make_user())
    there, none = (f"/api/v1/escalations/{key}" for key in (sent.pk, 4711))

    assert other.get(there).status_code == other.get(none).status_code == 404
    assert other.get("/api/v1/escalations").json()["results"] == []
    body = {"text": "Five."}
    assert other.post(f"{there}/reply", body, format="json").status_code == 403


def test_the_list_costs_the_same_for_any_number(asker, django_assert_num_queries):
    for number in range(5):
        escalate(make_answer(asker, question=f"Question {number}?").pk, user=asker)
    expert = rest_client(make_user(Role.SME))

    with django_assert_num_queries(3):  # may ask, sees all?, the rows
        found = expert.get("/api/v1/escalations", {"state": "open"}).json()["results"]
    assert len(found) == 5


def test_experts_reply_in_the_admin(client, sent):
    expert = make_staff(Role.SME)
    client.force_login(expert)
    url = reverse("admin:qa_escalation_change", args=[sent.pk])
    audience = make_audience()

    shown = client.get(url).content.decode()
    refused = client.post(url, {"said": "Five.", "how": "answer", "keep": "on"})
    saved = client.post(
        url,
        {"said": "Five.", "how": "answer", "keep": "on", "audience": audience.pk},
        follow=True,
    )
    after = client.get(url).content.decode()

    assert "Mr Meier waits." in shown
    assert f'<option value="{audience.pk}" selected>' in shown
    assert "verify it at once" not in shown
    assert "Choose who may see the entry" in refused.content.decode()
    assert Escalation.objects.get().entry == Entry.objects.get()
    assert f"{sent.raised_by} reads your reply. It is kept as" in saved.content.decode()
    assert "was changed successfully" not in saved.content.decode()
    assert "Five." in after
    assert 'name="said"' not in after


@pytest.mark.slow
def test_experts_choose_among_entries_that_the_asker_may_see_too(client, sent):
    near = make_entry("A wire transfer costs five euros.")
    vault = make_audience("vault", groups=["vault"])
    hidden = make_entry("A wire transfer is free for the board.", audience=vault)
    client.force_login(make_staff(Role.SME, groups=["vault"]))
    url = reverse("admin:qa_escalation_change", args=[sent.pk])
    given = {"how": "entry", "said": "", "keep": "on"}

    shown = client.get(url).content.decode()
    nothing = client.post(url, given).content.decode()
    refused = client.post(url, {**given, "entry": hidden.pk}).content.decode()
    written = {**given, "how": "answer", "said": "Six.", "keep": "", "entry": near.pk}
    unclear = client.post(url, written).content.decode()
    searched = {**given, "how": "answer", "words": "wire transfer"}
    searching = client.post(url, searched).content.decode()
    client.post(url, {**given, "entry": near.pk})

    assert f'name="entry" value="{near.pk}"' in shown
    assert "choose “an existing entry that answers it”" in unclear
    assert "Choose one of those found for “wire transfer”." in searching
    assert f'name="entry" value="{hidden.pk}"' not in shown
    assert "Choose an entry, or find others by words." in nothing
    assert "Select a valid choice" in refused
    sent.refresh_from_db()
    assert (sent.state, sent.reply, sent.entry) == ("answered", near.text, near)


def test_over_rest_an_entry_is_the_reply(sent):
    entry = make_entry("A wire transfer costs five euros.")
    waiting = make_entry("It is free.", state="in_review")
    expert = rest_client(make_user(Role.SME))
    url = f"/api/v1/escalations/{sent.pk}/reply"

    refused = expert.post(url, {"entry": waiting.pk}, format="json")
    done = expert.post(url, {"entry": entry.pk}, format="json")

    assert refused.status_code == 400
    assert "not verified" in str(refused.json())
    assert (done.json()["reply"], done.json()["entry"]) == (entry.text, entry.pk)


@pytest.mark.parametrize(
    ("words", "is_found"),
    [("wire cost", True), ("transf", True), ("byron", True), ("cheque", False)],
)
def test_escalations_are_found_by_words_and_by_who_asked(
    client, sent, asker, words, is_found
):
    asker.first_name, asker.last_name = "Ada", "Byron"
    asker.save()
    client.force_login(make_staff(Role.SME))

    url = reverse("admin:qa_escalation_changelist")
    shown = client.get(url, {"q": words}).content.decode()

    assert (sent.answer.question in shown) is is_found


def test_agents_have_no_queue(client, sent):
    agent = make_staff()
    client.force_login(agent)

    url = reverse("admin:qa_escalation_changelist")
    assert client.get(url).status_code == 403


def test_the_answers_page_shows_where_it_stands(client, refusal, asker):
    client.force_login(asker)
    page = reverse("answer", args=[refusal.pk])

    before = client.get(page).content.decode()
    client.post(reverse("answer-escalate", args=[refusal.pk]), {"note": "Now."})
    waiting = client.get(page).content.decode()
    listed_before = client.get(reverse("answers")).content.decode()
    reply(Escalation.objects.get().pk, by=make_user(Role.SME), text="Five euros.")
    listed = client.get(reverse("answers")).content.decode()
    replied = client.get(page).content.decode()
    after = client.get(reverse("answers")).content.decode()

    assert "Send to an expert" in before
    assert "The reply appears here." in waiting
    assert "Send to an expert" not in waiting
    assert "Waiting for an expert" in listed_before
    assert "An expert replied" in listed
    assert "Waiting for an expert" not in listed
    assert "Five euros." in replied
    assert "An expert replied" not in after  # it was opened


def test_who_reviews_sees_no_button_on_anothers_refusal(client, refusal):
    client.force_login(make_user(Role.SME))

    page = client.get(reverse("answer", args=[refusal.pk])).content.decode()

    assert "Send to an expert" not in page
    assert Answer.objects.count() == 1
