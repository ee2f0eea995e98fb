"""A person's words and names go everywhere; what is counted and learnt from stays."""

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.acting import acting_for, as_owner
from accounts.models import ApiToken, AuditEntry, KeptReply, ProviderAccount
from accounts.roles import Role
from accounts.services import create_token, set_knowledge_roles
from integrations.models import Endpoint
from jobs.models import Job
from jobs.run import run_job
from kb.entries.comments import add_comment
from kb.entries.wordings import Wording
from kb.models import Entry, KnowledgeBase
from kb.upkeep.services import flag_outdated
from qa.answers.submitted_text import EntryOptions
from qa.gaps.escalations import close, escalate, reply
from qa.models import (
    Answer,
    Escalation,
    Gap,
    GapQuestion,
    Notice,
    PastQuestion,
    Review,
    Vote,
)
from qa.privacy.persons import KIND, erase_person, export_person
from qa.reviews.labels import reviewed_questions
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_tag,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers import tasks
from workers.registry import HANDLERS

pytestmark = pytest.mark.django_db(transaction=True)

NAME, WORDS = "zwirbelina", "Zwirbelgold"
"""What nobody else says: found nowhere afterwards."""


@pytest.fixture
def person():
    with acting_for(make_user(Role.ADMIN, username="root")):
        user = make_user(username=NAME, groups=["vault"])
        user.email, user.first_name = f"{NAME}@example.org", f"{NAME} the first"
        user.save()
    make_tag("gold", user)
    return user


def leave_traces(person) -> Answer:
    """Let a person ask, vote, escalate and be judged, with their words in every field."""
    entry = make_entry()
    answered = make_answer(
        person, question=f"What does {WORDS} cost?", cited=(entry,),
        text=f"{WORDS} costs 12 euros.", reasoning=WORDS,
        generation={"raw": WORDS, "answer": WORDS, "answer_tokens": 7, "cited": [1]},
        boundary={"fingerprint": "x", "segments": [{"text": WORDS}]},
        contradictions=[{"conflict_id": 1, "entries": [1, 2], "quotes": [WORDS]}],
    )  # fmt: skip
    Vote.objects.create(
        answer=answered, user=person, is_up=False, comment=WORDS,
        expected_answer=WORDS,
    )  # fmt: skip
    KeptReply.objects.create(user=person, key=NAME, digest="0", status=200, body=WORDS)
    add_comment(entry_id=entry.pk, by=person, text=WORDS)
    flag_outdated(entry_id=entry.pk, by=person, note=WORDS)
    expert = make_user(Role.SME)
    Review.objects.create(
        answer=answered, state="done", reviewed_by=expert, reviewed_at=timezone.now(),
        completeness=2, correctness=2, truthfulness=2, ideal_answer=WORDS, note=WORDS,
    )  # fmt: skip
    refused = make_answer(person, question=f"Who sells {WORDS}?")
    sent = escalate(refused.pk, user=person, note=f"It is about {WORDS}.")
    close(sent.pk, by=expert, reason=f"Nobody sells {WORDS}.")
    waiting = make_answer(person, question=f"Where is {WORDS}?")
    escalate(waiting.pk, user=person)
    other = make_answer(make_user(), question="Where do I buy gold?")
    gap = Gap.objects.create(
        knowledge_base=answered.knowledge_base, question=refused.question,
        vector=[1.0] * 384, first_seen=timezone.now(), last_seen=timezone.now(),
    )  # fmt: skip
    for asked in (refused, other):
        GapQuestion.objects.create(
            gap=gap, answer=asked, asker=asked.asker, why="refused", distance=0.1,
            asked_at=timezone.now(),
        )  # fmt: skip
    Answer.objects.filter(pk=other.pk).update(service=NAME)  # by a token of theirs
    with acting_for(person):
        create_token(user=person, name="own")
        ProviderAccount.objects.create(user=person, subject=f"{NAME}@example.org")
    Endpoint.objects.create(name="CRM", url="https://x", owner=person, types=[])
    return answered


def tables_that_say(*words: str) -> set[str]:
    """Return each table with a row in whose text, of any column, one of `words` is."""
    found = set()
    with as_owner("tests"), connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = model._meta.db_table
            if not model._meta.managed:
                continue
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE t::text ILIKE ANY (%s)',
                [[f"%{word}%" for word in words]],
            )
            if cursor.fetchone()[0]:
                found.add(table)
    return found


def test_an_erased_person_is_in_no_table_any_more(person):
    client = page_client(person)
    answered = leave_traces(person)
    Wording.objects.create(entry=Entry.objects.get(), text=answered.question)
    before = tables_that_say(NAME, WORDS)
    assert {
        "auth_user", "accounts_auditentry", "kb_wording", "qa_answer", "qa_vote", "qa_escalation",
        "qa_review", "qa_gap",
    } <= before  # fmt: skip

    assert erase_person(person) == 3

    assert tables_that_say(NAME, WORDS) == set()
    person.refresh_from_db()
    assert (person.username, person.is_active) == (f"erased-{person.pk}", False)
    assert not person.has_usable_password()
    assert client.get("/").status_code == 302  # its session is gone
    assert not ApiToken.objects.filter(user=person).exists()
    assert not Notice.objects.filter(user=person).exists()
    assert not Endpoint.objects.get().is_active
    # What is counted and learnt from.
    answered.refresh_from_db()
    assert (answered.outcome, answered.text) == ("answered", "[erased]")
    assert answered.generation == {"answer_tokens": 7}
    assert answered.evidence.count() == 1
    vote = Vote.objects.get()
    assert (vote.is_up, vote.comment) == (False, "")
    assert Review.objects.get().correctness == 2
    assert {each.state for each in Escalation.objects.all()} == {"closed"}
    assert Gap.objects.get().question == "Where do I buy gold?"
    assert reviewed_questions(answered.knowledge_base) == []
    assert not PastQuestion.objects.exists()
    audited = AuditEntry.objects.filter(subject__startswith=person.username)
    assert audited.filter(kind="membership", action="insert").count() == 2
    assert audited.filter(kind="user", actor="root", action="insert").exists()


def test_an_erasure_that_was_broken_off_is_finished_by_the_same_command(
    person, monkeypatch
):
    leave_traces(person)
    with monkeypatch.context() as patch:
        patch.setattr("qa.privacy.persons._erase_names", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            erase_person(person)
    assert not User.objects.get(pk=person.pk).is_active

    call_command("person", "erase", NAME)

    assert tables_that_say(NAME, WORDS) == set()


def test_the_export_has_all_that_they_wrote(person, tmp_path, capsys):
    leave_traces(person)
    file = tmp_path / "person.json"

    call_command("person", "export", NAME, "--output", str(file))

    exported = json.loads(file.read_text())
    assert file.stat().st_mode & 0o077 == 0
    assert exported["person"]["email"] == f"{NAME}@example.org"
    assert len(exported["questions"]) == 3
    assert exported["votes"][0]["comment"] == WORDS
    assert exported["escalations"][1]["note"] == f"It is about {WORDS}."
    assert exported["tokens"][0]["name"] == "own"
    assert "digest" not in exported["tokens"][0]
    with pytest.raises(CommandError, match="name a new file"):
        call_command("person", "export", NAME, "--output", str(file))
    with pytest.raises(CommandError, match="no user 'nobody'"):
        call_command("person", "erase", "nobody")


def test_a_superuser_is_not_erased(person):
    User.objects.filter(pk=person.pk).update(is_superuser=True)

    with pytest.raises(CommandError, match="is a superuser"):
        call_command("person", "erase", NAME)

    assert User.objects.get(pk=person.pk).username == NAME


def test_a_superuser_exports_and_erases_by_the_page(person, client):
    leave_traces(person)
    page = reverse("admin-person", args=[person.pk])
    admin = make_staff(Role.ADMIN)
    client.force_login(admin)
    assert client.get(page).status_code == 403
    client.force_login(User.objects.create_superuser("zeus"))

    shown = client.get(page).content.decode()
    assert NAME in shown
    exported = client.post(page, {"what": "export"})
    assert f'filename="person-{person.pk}.json"' in exported["Content-Disposition"]
    assert json.loads(exported.content)["votes"][0]["comment"] == WORDS
    wrong = client.post(page, {"what": "erase", "name": "else"}).content.decode()
    assert "nothing was erased" in wrong
    assert not Job.objects.exists()
    client.post(page, {"what": "erase", "name": NAME})
    job = Job.objects.get()
    assert NAME not in f"{job.parameters}{job.idempotency_key}"
    run_job(job.pk, HANDLERS)

    assert tables_that_say(NAME, WORDS) == set()
    assert "This person was erased." in client.get(page).content.decode()


@pytest.fixture
def manager() -> APIClient:
    """A client by a token that manages users, as a directory has one."""
    client = APIClient()
    admin = make_user(Role.ADMIN, username="directory")
    secret = create_token(user=admin, may_manage_users=True).secret
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def keep_their_question(person, audience) -> Entry:
    """Let an expert keep a reply as an entry, whose question is then the person's."""
    expert = make_user(Role.CURATOR, groups=["vault"])
    sent = escalate(
        make_answer(person, question=f"How old is {WORDS}?").pk, user=person
    )
    kept = EntryOptions(audience=audience, verify=True)
    entry = reply(sent.pk, by=expert, text="It is old.", keep=kept).entry
    assert entry is not None
    return entry


def test_entries_that_hold_their_words_are_named_and_stay(person, capsys):
    leave_traces(person)
    kept = keep_their_question(person, make_audience("vault", groups=["vault"]))
    filled, same = make_entry("Nobody sells it."), make_entry("Like gold.")
    Gap.objects.update(entry=filled)
    Entry.objects.filter(pk=same.pk).update(question=f"Where is {WORDS}?")
    asked_alike = make_entry("Ask at the desk.")
    Wording.objects.create(entry=asked_alike, text=f"Where is {WORDS}?")

    exported = export_person(person)
    call_command("person", "erase", NAME)

    named = sorted([kept.pk, filled.pk, same.pk])
    assert [row["id"] for row in exported["entries_of_their_questions"]] == named
    assert [row["entry_id"] for row in exported["wordings"]] == [asked_alike.pk]
    said = f"entries {', '.join(map(str, named))}. Edit or erase these."
    assert said in capsys.readouterr().out
    assert {"kb_entry", "kb_revision"} <= tables_that_say(WORDS)
    assert "kb_wording" not in tables_that_say(WORDS)


def test_a_person_is_exported_and_erased_over_rest(person, manager):
    leave_traces(person)
    kept = keep_their_question(person, make_audience("vault", groups=["vault"]))
    address = f"/api/v1/users/{NAME}"

    exported = manager.get(f"{address}/export").json()
    assert exported["person"]["username"] == NAME
    assert exported["votes"][0]["comment"] == WORDS
    # The token's own user may not see the entry, and learns no word of it.
    (row,) = exported["entries_of_their_questions"]
    assert row.keys() == {"id", "knowledge_base__slug", "state", "created_at"}
    assert row["id"] == kept.pk

    for wrong in ({}, {"username": "else"}, {"username": NAME, "now": True}):
        refused = manager.post(f"{address}/erase", wrong, format="json")
        assert refused.status_code == 400
    assert not Job.objects.filter(kind=KIND).exists()
    begun = manager.post(f"{address}/erase", {"username": NAME}, format="json")
    assert begun.status_code == 202
    job = Job.objects.get(kind=KIND)
    assert begun.json()["id"] == str(job.pk)
    run_job(job.pk, HANDLERS)

    done = manager.get(f"/api/v1/jobs/{job.pk}").json()["result"]
    assert done == {"questions": 4, "entries": [kept.pk]}
    assert User.objects.get(pk=person.pk).username == f"erased-{person.pk}"
    assert manager.get(f"{address}/export").status_code == 404


def test_without_the_right_nobody_is_exported_or_erased(person, manager):
    User.objects.create_superuser("zeus")
    address = f"/api/v1/users/{NAME}"
    assert manager.get("/api/v1/users/zeus/export").status_code == 404
    over = manager.post("/api/v1/users/zeus/erase", {"username": "zeus"}, format="json")
    assert over.status_code == 404

    elsewhere = make_user(None)
    set_knowledge_roles(elsewhere, {make_knowledge_base("travel").pk: "curator"})
    plain = make_user(Role.ADMIN)
    for user in (
        *map(make_user, (Role.AGENT, Role.SME, Role.CURATOR)),
        elsewhere,
        plain,
        person,
    ):
        client = APIClient()
        secret = create_token(user=user).secret
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        asked = client.get(f"{address}/export")
        erased = client.post(f"{address}/erase", {"username": NAME}, format="json")
        assert (asked.status_code, erased.status_code) == (403, 403)
    assert not Job.objects.filter(kind=KIND).exists()


def test_old_texts_go_by_the_age_that_the_knowledge_base_wants(person):
    answered = leave_traces(person)
    kept = make_answer(person, question=f"Is {WORDS} new?")
    base = make_knowledge_base()
    other = make_answer(person, question=f"Is {WORDS} elsewhere?")
    Answer.objects.filter(pk=other.pk).update(knowledge_base=make_knowledge_base("b"))
    Answer.objects.exclude(pk=kept.pk).update(
        created_at=timezone.now() - timedelta(days=31)
    )
    tasks.erase_old_texts()
    assert not Job.objects.exists()  # nobody wants it
    KnowledgeBase.objects.filter(pk=base.pk).update(keep_texts_days=30)

    tasks.erase_old_texts()
    run_job(Job.objects.get().pk, HANDLERS)

    assert Job.objects.get().result == {"erased": 4}
    texts = dict(Answer.objects.values_list("pk", "question"))
    assert texts.pop(kept.pk) == kept.question
    assert texts.pop(other.pk) == other.question
    assert set(texts.values()) == {"[erased]"}
    answered.refresh_from_db()
    assert answered.asker == person
    assert (answered.text, answered.outcome) == ("[erased]", "answered")
    assert Vote.objects.get().comment == ""


# Every text of an answer and of what hangs on it: whether it is erased with it.
ERASED_WITH_IT = {
    "answer.question", "answer.typed", "answer.text", "answer.reasoning", "answer.generation",
    "answer.boundary", "answer.contradictions", "answer.error", "vote.comment",
    "vote.expected_answer", "review.ideal_answer", "review.note", "escalation.note",
    "escalation.reply",
}  # fmt: skip
NO_WORDS = {
    # Measurements, names of models, choices.
    "answer.service", "answer.signals", "answer.milliseconds", "answer.confidence", "answer.channel",
    "answer.language", "answer.refusal_language", "answer.outcome", "answer.gate", "answer.reason",
    "answer.shown_reason", "answer.calibration", "answer.embedder",
    "answer.language_model", "answer.probes", "answer.scope", "review.state", "escalation.state",
    "pastquestion.language_model", "pastquestion.own_model", "gapquestion.why",
    "notice.kind", "evaluationresult.gate", "evaluationresult.reason",
    "evaluationresult.signals", "evaluationresult.measures",
    # What entries say, and the numbers that suites give to their questions.
    "answerevidence.role", "answerevidence.quote", "evaluationresult.case_id",
    "evaluationresult.group",
}  # fmt: skip


def test_of_every_text_it_is_decided_whether_it_is_erased():
    found = set()
    for model in apps.get_app_config("qa").get_models():
        links = {f.related_model for f in model._meta.fields if f.is_relation}
        if model is Answer or Answer in links:
            found |= {
                f"{model._meta.model_name}.{field.name}"
                for field in model._meta.fields
                if isinstance(
                    field, models.CharField | models.TextField | models.JSONField
                )
            }

    assert found == ERASED_WITH_IT | NO_WORDS
