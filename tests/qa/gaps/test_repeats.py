"""What was refused is asked again once it is known, and whoever asked is told."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.states import verify_entry
from kb.entries.wordings import Wording, remove_wordings
from kb.models import Proposal
from qa.answers.asking import ask
from qa.answers.submitted_text import EntryOptions
from qa.gaps import finding as gap_finding
from qa.gaps import repeats
from qa.gaps import services as gaps
from qa.gaps.escalations import escalate, reply
from qa.models import Answer, Gap, Notice, Repeat
from qa.policies.services import ensure_default_policy
from qa.votes.services import vote
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers import tasks
from workers.registry import HANDLERS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUESTION = "What does a wire transfer cost?"


@pytest.fixture(autouse=True)
def _policy():
    ensure_default_policy(make_knowledge_base())
    make_entry("Cats grow about fifteen years old.")


def ask_as(asker, question: str = QUESTION) -> Answer:
    return ask(
        question, asker=asker, knowledge_base=make_knowledge_base(), channel="page"
    )


def run(kind: str) -> Job:
    """Run the one job of a kind that waits."""
    job = Job.objects.unfinished().get(kind=kind)
    run_job(job.pk, HANDLERS)
    job.refresh_from_db()
    return job


def find() -> Gap:
    enqueue(gap_finding.KIND, {})
    run(gap_finding.KIND)
    return Gap.objects.get()


def fill(gap: Gap, audience=None) -> Job:
    """Have a curator write the answer; return the job that asked again."""
    kept = EntryOptions(audience or make_audience(), verify=True)
    curator = make_user(Role.CURATOR, groups=["vault"])
    gaps.draft(gap.pk, by=curator, text="It costs 5 euros.", options=kept)
    return run(repeats.KIND)


def test_filling_a_gap_asks_again_for_everybody_and_tells_them():
    one, other = make_user(), make_user()
    before = [ask_as(one), ask_as(other, "How much is a wire transfer?")]
    assert [each.outcome for each in before] == ["refused"] * 2
    gap = find()

    job = fill(gap)

    assert (job.state, job.result["asked"], job.result["filled"]) == ("succeeded", 2, 1)
    gap.refresh_from_db()
    assert gap.state == "filled"
    first = Repeat.objects.get(before=before[0])
    assert (first.after.asker, first.after.channel) == (one, "repeat")
    assert (first.after.outcome, first.is_better) == ("answered", True)
    assert first.after.text == "It costs 5 euros."
    notice = Notice.objects.of(one).get()
    assert (notice.kind, notice.repeat) == ("answered", first)
    assert not Answer.objects.live().filter(channel="repeat").exists()


def test_what_no_source_carries_is_no_help():
    asker = make_user()
    before = make_answer(asker)
    unsourced, sourced = (
        make_answer(asker, outcome="answered", reason="", gate=gate)
        for gate in ("boundary", "")
    )

    assert not Repeat(before=before, after=unsourced).was_helped()
    assert Repeat(before=before, after=sourced).was_helped()


def test_the_same_words_of_the_same_asker_are_asked_once():
    asker = make_user()
    for question in (QUESTION, QUESTION.upper(), QUESTION):
        ask_as(asker, question)

    job = fill(find())

    assert job.result["asked"] == 1
    assert Gap.objects.get().state == "filled"


def test_whoever_may_not_see_the_entry_is_told_nothing_and_the_gap_stays_open():
    asker = make_user()
    ask_as(asker)

    fill(find(), make_audience("vault", groups=["vault"]))

    repeat = Repeat.objects.get()
    assert (repeat.after.outcome, repeat.is_better) == ("refused", False)
    assert "euros" not in repeat.after.text
    gap = Gap.objects.visible_to(make_user(Role.SME)).get()
    assert (gap.state, gap.entry) == ("open", None)
    assert not Notice.objects.exists()


def test_it_waits_until_an_expert_has_verified_the_draft():
    ask_as(make_user())
    gap = find()
    drafted = gaps.draft(
        gap.pk,
        by=make_user(Role.SME),
        text="5 euros.",
        options=EntryOptions(make_audience()),
    )
    tasks.ask_again()
    assert not Job.objects.filter(kind=repeats.KIND).exists()

    assert drafted.entry is not None
    verify_entry(entry_id=drafted.entry.pk, by=make_curator())
    tasks.ask_again()
    run(repeats.KIND)

    assert Repeat.objects.get().is_better
    tasks.ask_again()
    assert not Job.objects.unfinished().filter(kind=repeats.KIND).exists()


def test_a_verified_proposal_fills_the_gap_that_it_was_made_for():
    ask_as(make_user())
    gap = gaps.propose(find().pk, by=make_curator(), audience=make_audience())
    entry = make_entry("5 euros.", question=QUESTION, state="in_review")
    Proposal.objects.create(
        knowledge_base=gap.knowledge_base, entry=entry, seed_question=QUESTION,
        question=QUESTION, question_sha256="0" * 64, answer="5 euros.",
        sentence="5 euros.", stated=0.5, agreement=0.5, confidence=0.5,
        model_name="test", model_fingerprint="0" * 64, prompt_version="1",
        random_seed=0, job_id=gap.proposing_job_id,
    )  # fmt: skip
    tasks.ask_again()
    assert not Job.objects.filter(kind=repeats.KIND).exists()

    verify_entry(entry_id=entry.pk, by=make_curator())
    tasks.ask_again()
    run(repeats.KIND)

    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("filled", entry)


def test_an_escalated_question_is_asked_again_and_one_notice_stays_unread():
    asker = make_user()
    before = ask_as(asker)
    sent = escalate(before.pk, user=asker)

    kept = EntryOptions(make_audience(), verify=True)
    reply(sent.pk, by=make_curator(), text="It costs 5 euros.", keep=kept)
    assert Notice.objects.unread().get().kind == "reply"
    run(repeats.KIND)

    assert Repeat.objects.get(before=before).is_better
    assert Notice.objects.unread().get().kind == "answered"
    assert Notice.objects.of(asker).count() == 2
    tasks.ask_again()
    assert not Job.objects.unfinished().filter(kind=repeats.KIND).exists()


def test_an_answer_that_was_voted_down_is_better_only_by_the_new_entry():
    asker = make_user()
    wrong = make_entry("It costs 9 euros.", question=QUESTION)
    answer = ask_as(asker)
    assert answer.outcome == "answered"
    vote(answer.pk, user=asker, is_up=False)
    gap = find()

    right = make_entry("Cats like fish.")
    gaps.link(gap.pk, by=make_curator(), entry_id=right.pk)
    remove_wordings(Wording.objects.all())  # which would let it answer
    run(repeats.KIND)

    repeat = Repeat.objects.get()
    assert (repeat.after.outcome, repeat.is_better) == ("answered", False)
    assert Gap.objects.get().state == "open"

    gaps.link(gap.pk, by=make_curator(), entry_id=wrong.pk)
    run(repeats.KIND)
    assert Repeat.objects.order_by("-pk")[0].is_better


def test_a_filled_gap_that_is_refused_again_is_open_again():
    asker = make_user()
    ask_as(asker)
    gap = find()
    fill(gap)
    gap.refresh_from_db()
    assert gap.entry is not None

    stranger = make_user()
    late = ask_as(stranger, "Who drinks the wire transfer milk?")
    Answer.objects.filter(pk=late.pk).update(
        outcome="refused", gate="hard_refusal", reason="too_far", question=QUESTION
    )
    find()

    gap.refresh_from_db()
    assert gap.state == "open"
    assert [gap.closed_at, gap.entry] == [None, None]


def test_what_was_refused_before_the_gap_was_filled_and_found_later_is_asked_again():
    ask_as(make_user())
    gap = find()
    late = ask_as(make_user(), "How much is a wire transfer?")
    fill(gap)

    find()
    tasks.ask_again()
    run(repeats.KIND)

    assert Repeat.objects.get(before=late).is_better
    gap.refresh_from_db()
    assert (gap.state, gap.questions) == ("filled", 2)


def test_a_question_that_was_broken_off_is_taken_up_and_not_asked_twice():
    asker = make_user()
    before = ask_as(asker)
    gap = find()
    entry = make_entry("5 euros.", question=QUESTION)
    gaps.link(gap.pk, by=make_curator(), entry_id=entry.pk)
    pending = Answer.objects.create(
        knowledge_base=gap.knowledge_base, asker=asker, question=QUESTION,
        channel="repeat", outcome="failed",
    )  # fmt: skip
    Repeat.objects.create(before=before, after=pending, gap=gap, entry=entry)

    job = run(repeats.KIND)

    assert job.result == {"asked": 1, "better": 1, "filled": 1}
    pending.refresh_from_db()
    assert pending.outcome == "answered"


def test_a_model_that_is_down_lets_the_job_go_on_later(settings):
    ask_as(make_user())
    gap = find()
    stated = make_entry("A wire transfer costs 5 euros.")
    settings.LANGUAGE_SERVER_URL = "http://127.0.0.1:1/v1"
    settings.LANGUAGE_SERVER_RETRIES = 0
    gaps.link(gap.pk, by=make_curator(), entry_id=stated.pk)
    remove_wordings(Wording.objects.all())  # which would need no model
    job = run(repeats.KIND)
    assert (job.state, Repeat.objects.get().after.outcome) == ("queued", "failed")

    settings.LANGUAGE_SERVER_URL = ""
    Job.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    job = run(repeats.KIND)

    assert (job.state, job.result["asked"]) == ("succeeded", 1)
    assert Repeat.objects.get().after.outcome in {"answered", "refused"}


def test_nobody_is_asked_for_who_has_left():
    asker = make_user()
    ask_as(asker)
    gap = find()
    asker.is_active = False
    asker.save()

    job = fill(gap)

    assert (job.result["asked"], mail.outbox) == (0, [])


def test_an_open_gap_that_other_knowledge_answers_now_is_closed_for_who_may_see_it():
    insider, agent = make_user(groups=["vault"]), make_user()
    ask_as(insider)
    gap = find()
    assert not Job.objects.unfinished().filter(kind=repeats.KIND).exists()
    vault = make_audience("vault", groups=["vault"])
    entry = make_entry(
        "A wire transfer costs 5 euros.", question=QUESTION, audience=vault
    )

    find()
    job = run(repeats.KIND)

    assert (job.result["asked"], job.result["filled"]) == (1, 1)
    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("filled", entry)
    assert Notice.objects.of(insider).get().kind == "answered"
    outsider = make_user(Role.SME)
    assert not Gap.objects.visible_to(outsider).filter(pk=gap.pk).exists()
    assert not Notice.objects.of(agent).exists()


def test_an_open_gap_that_is_not_answered_for_its_asker_stays_open_and_is_left_alone():
    ask_as(make_user())
    ask_as(make_user(), "How much is a wire transfer?")
    gap = find()
    vault = make_audience("vault", groups=["vault"])
    make_entry("A wire transfer costs 5 euros.", question=QUESTION, audience=vault)

    find()
    job = run(repeats.KIND)
    make_entry("Dogs grow about twelve years old.")
    find()

    assert (job.result["asked"], job.result["filled"]) == (1, 0)
    gap.refresh_from_db()
    assert (gap.state, gap.entry) == ("open", None)
    assert not Job.objects.unfinished().filter(kind=repeats.KIND).exists()
