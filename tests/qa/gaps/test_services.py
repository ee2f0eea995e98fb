"""Gaps: what joins which, what they count, what experts make of them."""

import math
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from accounts.exceptions import ForbiddenError
from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.enrichment.proposals import question_key
from kb.entries.states import retire_entry
from kb.exceptions import EntryRetiredError
from kb.models import EmbeddingModel, Entry, Proposal
from qa.answers.submitted_text import EntryOptions
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps import finding as gap_finding
from qa.gaps import services as gaps
from qa.gaps.escalations import escalate, reply
from qa.gaps.models import HALF_LIFE, impact
from qa.models import Answer, Gap, GapQuestion
from qa.votes.services import vote
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

WIRE = (
    "What does a wire transfer cost?",
    "How much is a wire transfer?",
    "What is the price of a wire transfer?",
)
CAT = "How old does a cat get?"


def refuse(asker, question: str, **fields) -> Answer:
    fields.setdefault("decided_at", timezone.now())
    return make_answer(asker, question=question, **fields)


def find(batch: int = gap_finding.BATCH) -> Job:
    job = enqueue(gap_finding.KIND, {})
    handler = {gap_finding.KIND: lambda run: gap_finding.find_gaps(run, batch=batch)}
    run_job(job.pk, handler)
    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED, job.error
    return job


def make_gap() -> Gap:
    refuse(make_user(), WIRE[0])
    find()
    return Gap.objects.get()


@pytest.mark.parametrize("batch", [1, 1_000])
def test_questions_of_one_meaning_are_one_gap(batch):
    one, other = make_user(), make_user()
    for question in WIRE:
        refuse(one, question)
    refuse(other, WIRE[0])
    refuse(one, CAT)

    job = find(batch)

    assert job.result == {"placed": 5, "let_go": 0, "open": 2}
    first, second = Gap.objects.ranked()
    assert (first.questions, first.askers, first.question in WIRE) == (4, 2, True)
    assert (second.questions, second.askers, second.question) == (1, 1, CAT)
    assert math.isclose(np.linalg.norm(first.vector), 1, abs_tol=1e-5)
    assert find(batch).result["placed"] == 0


def test_a_question_that_comes_later_joins_the_gap_that_is_there():
    gap = make_gap()

    refuse(make_user(), WIRE[1])
    find()

    gap.refresh_from_db()
    assert (Gap.objects.count(), gap.questions, gap.askers) == (1, 2, 2)
    assert gap.last_seen > gap.first_seen


def test_gaps_of_two_knowledge_bases_do_not_meet():
    refuse(make_user(), WIRE[0])
    other = refuse(make_user(), WIRE[0])
    Answer.objects.filter(pk=other.pk).update(
        knowledge_base=make_knowledge_base("loans")
    )

    find()

    assert Gap.objects.count() == 2


def test_only_what_people_asked_and_got_no_good_answer_to_is_in_gaps():
    asker = make_user()
    entry = make_entry()
    refuse(asker, "What is refused in an evaluation?", channel="evaluation")
    refuse(asker, "What do we ask again ourselves?", channel="repeat")
    good = make_answer(asker, question="What does a card cost?", cited=(entry,))
    bad = make_answer(asker, question="What does a letter cost?", cited=(entry,))
    vote(good.pk, user=asker, is_up=True)
    vote(bad.pk, user=asker, is_up=False)

    find()

    assert [q.answer for q in GapQuestion.objects.all()] == [bad]
    assert GapQuestion.objects.get().why == "voted_down"


def test_a_thumb_taken_back_takes_the_question_out_of_its_gap():
    asker = make_user()
    answer = make_answer(asker, cited=(make_entry(),))
    vote(answer.pk, user=asker, is_up=False)
    find()
    assert Gap.objects.exists()

    vote(answer.pk, user=asker, is_up=None)
    job = find()

    assert job.result["let_go"] == 1
    assert not Gap.objects.exists()


def test_what_is_decided_late_is_found_however_long_ago_it_was_asked():
    make_gap()
    late = refuse(make_user(), CAT)
    Answer.objects.filter(pk=late.pk).update(
        created_at=timezone.now() - timedelta(days=3)
    )

    find()

    assert Gap.objects.filter(question=CAT).exists()


def test_ten_who_ask_once_matter_more_than_one_who_asks_ten_times():
    pest = make_user()
    for _ in range(4):
        refuse(pest, CAT)
    for question in WIRE:
        refuse(make_user(), question)

    find()

    first, second = Gap.objects.ranked()
    now = timezone.now()
    assert (first.questions, second.questions) == (3, 4)
    assert impact(first.impact_score, now) == pytest.approx(3, rel=1e-3)
    assert impact(second.impact_score, now) == pytest.approx(2, rel=1e-3)
    assert impact(second.impact_score, now + 2 * HALF_LIFE) == pytest.approx(1, rel=1e-3)  # fmt: skip


def test_the_trend_compares_two_weeks_with_the_two_before():
    asker = make_user()
    for days in (1, 2, 20, 40):
        refused = refuse(asker, WIRE[0])
        at = timezone.now() - timedelta(days=days)
        Answer.objects.filter(pk=refused.pk).update(created_at=at)
    find()

    gap = Gap.objects.with_trend(timezone.now()).get()

    assert (gap.recent, gap.before) == (2, 1)


def test_gaps_follow_the_embedding_model():
    gap = make_gap()
    other = EmbeddingModel.objects.create(
        name="other", fingerprint="0" * 64, dimensions=2, state="retired"
    )
    Gap.objects.update(embedding_model=other, vector=[1.0, 0.0])

    refuse(make_user(), WIRE[1])
    find()

    gap = Gap.objects.get()
    assert gap.questions == 2
    assert gap.embedding_model != other


def test_a_draft_is_an_entry_in_review_and_the_gap_waits_for_it():
    gap = make_gap()
    expert = make_user(Role.SME)

    verified = EntryOptions(make_audience(), verify=True)
    with pytest.raises(InvalidGapError, match="Only curators verify"):
        gaps.draft(gap.pk, by=expert, text="5.", options=verified)
    with pytest.raises(InvalidGapError, match="empty"):
        gaps.draft(gap.pk, by=expert, text=" ", options=EntryOptions(make_audience()))

    done = gaps.draft(
        gap.pk, by=expert, text="5 euros.", options=EntryOptions(make_audience())
    )

    assert done.entry is not None
    assert (done.state, done.owner) == ("drafted", expert)
    assert (done.entry.state, done.entry.question) == ("in_review", gap.question)
    assert not Job.objects.filter(kind="qa.ask_again").exists()
    assert Entry.objects.count() == 1


def test_nothing_else_fills_a_gap_that_waits_for_a_review():
    gap, expert = make_gap(), make_user(Role.SME)
    options = EntryOptions(make_audience())
    drafted = gaps.draft(gap.pk, by=expert, text="5 euros.", options=options)
    other = make_entry("A transfer costs 6 euros.")

    with pytest.raises(GapClosedError, match="waits for a review already"):
        gaps.draft(gap.pk, by=expert, text="6 euros.", options=options)
    with pytest.raises(GapClosedError, match="waits for a review already"):
        gaps.link(gap.pk, by=expert, entry_id=other.pk)

    gap.refresh_from_db()
    assert gap.entry == drafted.entry


def test_a_verified_entry_that_is_linked_has_the_questions_asked_again():
    gap = make_gap()
    entry = make_entry("5 euros.", question=WIRE[0])

    with pytest.raises(InvalidGapError, match="no entry 999"):
        gaps.link(gap.pk, by=make_user(Role.SME), entry_id=999)
    gaps.link(gap.pk, by=make_user(Role.SME), entry_id=entry.pk)

    assert Job.objects.filter(kind="qa.ask_again").count() == 1


def test_only_an_entry_of_the_knowledge_base_that_one_sees_is_linked():
    gap = make_gap()
    expert = make_user(Role.SME)
    elsewhere = make_entry("5.", knowledge_base=make_knowledge_base("loans"))
    hidden = make_entry("6.", audience=make_audience("vault", groups=["vault"]))
    retired = make_entry("7.", state="retired")

    for entry in (elsewhere, hidden):
        with pytest.raises(InvalidGapError, match=f"There is no entry {entry.pk}"):
            gaps.link(gap.pk, by=expert, entry_id=entry.pk)
    with pytest.raises(EntryRetiredError, match="retired"):
        gaps.link(gap.pk, by=expert, entry_id=retired.pk)


def test_a_dismissed_gap_says_why_counts_on_and_can_be_reopened():
    gap = make_gap()
    expert = make_user(Role.SME)
    with pytest.raises(InvalidGapError, match="say why"):
        gaps.dismiss(gap.pk, by=expert, reason="  ")

    gaps.dismiss(gap.pk, by=expert, reason="Not our business.")
    refuse(make_user(), WIRE[1])
    find()

    gap.refresh_from_db()
    assert (gap.state, gap.questions, gap.reason) == ("dismissed", 2, "Not our business.")  # fmt: skip
    with pytest.raises(GapClosedError):
        gaps.link(gap.pk, by=expert, entry_id=make_entry().pk)
    assert gaps.reopen(gap.pk, by=expert).state == "open"


def test_agents_do_not_know_of_gaps():
    gap = make_gap()

    with pytest.raises(GapNotFoundError):
        gaps.dismiss(gap.pk, by=make_user(), reason="x")
    assert not Gap.objects.visible_to(make_user()).exists()


def test_a_gap_filled_by_a_hidden_entry_is_hidden():
    gap = make_gap()
    vault = make_audience("vault", groups=["vault"])
    insider = make_user(Role.SME, groups=["vault"])

    gaps.draft(gap.pk, by=insider, text="5 euros.", options=EntryOptions(vault))

    assert Gap.objects.visible_to(insider).exists()
    assert not Gap.objects.visible_to(make_user(Role.SME)).exists()


def test_owners_are_experts():
    gap = make_gap()
    expert = make_user(Role.SME)

    assert gaps.assign(gap.pk, by=expert, owner=expert).owner == expert
    assert gaps.assign(gap.pk, by=expert, owner=None).owner is None
    with pytest.raises(InvalidGapError, match="not an expert"):
        gaps.assign(gap.pk, by=expert, owner=make_user())


def test_enrichment_is_asked_to_answer_the_gaps_questions():
    gap = make_gap()
    curator = make_user(Role.CURATOR)
    with pytest.raises(ForbiddenError, match="Only curators"):
        gaps.propose(gap.pk, by=make_user(Role.SME), audience=make_audience())

    done = gaps.propose(gap.pk, by=curator, audience=make_audience())

    job = Job.objects.get(kind="kb.enrich")
    assert (job.pk, job.owner, done.state) == (
        done.proposing_job_id,
        curator,
        "drafted",
    )
    assert (job.parameters["seeds"], job.parameters["per_seed"]) == ([WIRE[0]], 0)
    with pytest.raises(GapClosedError, match="waits for a review already"):
        gaps.propose(gap.pk, by=curator, audience=make_audience())


def test_gaps_are_proposed_for_each_night_where_that_is_wanted(settings, caplog):
    gap = make_gap()
    assert gaps.propose_due() == 0
    settings.ENRICH_GAPS_FOR = "nobody"
    assert gaps.propose_due() == 0
    assert "the audience 'nobody', which does not exist" in caplog.text
    settings.ENRICH_GAPS_FOR = make_audience().slug

    assert gaps.propose_due() == 1

    job = Job.objects.get(kind="kb.enrich")
    gap.refresh_from_db()
    assert (job.owner, job.parameters["seeds"]) == (None, [WIRE[0]])
    assert (gap.state, gap.owner, gap.proposing_job_id) == ("drafted", None, job.pk)
    reject_one_of(job, gap)
    Proposal.objects.update(question_sha256=question_key(WIRE[0]))
    gap.state, gap.proposing_job_id = Gap.State.OPEN, None
    gap.save()
    assert gaps.propose_due() == 0
    Proposal.objects.all().delete()
    gaps.assign(gap.pk, by=(expert := make_user(Role.SME)), owner=expert)
    assert gaps.propose_due() == 0


@pytest.mark.parametrize("why", ["nothing proposed", "all rejected", "retired"])
def test_a_gap_of_which_nothing_comes_is_open_again(why):
    gap, curator = make_gap(), make_user(Role.CURATOR)
    if why == "retired":
        kept = EntryOptions(make_audience())
        gaps.draft(gap.pk, by=curator, text="5 euros.", options=kept)
        drafted = Gap.objects.get().entry
        assert drafted is not None
        find()
        assert Gap.objects.get().state == "drafted"
        retire_entry(entry_id=drafted.pk, by=curator, reason="No.")
    else:
        gaps.propose(gap.pk, by=curator, audience=make_audience())
        find()
        assert Gap.objects.get().state == "drafted"
        job = Job.objects.get(kind="kb.enrich")
        job.state, job.finished_at = Job.State.SUCCEEDED, timezone.now()
        job.save()
        if why == "all rejected":
            reject_one_of(job, gap)

    find()

    gap.refresh_from_db()
    assert (gap.state, gap.entry, gap.proposing_job_id) == ("open", None, None)


def reject_one_of(job: Job, gap: Gap) -> None:
    """Let a job propose one thing, which waits and then is rejected."""
    proposal = Proposal.objects.create(
        knowledge_base=gap.knowledge_base, entry=make_entry("5.", state="in_review"),
        seed_question="?", question="?", question_sha256="0" * 64, answer="5.",
        sentence="5.", stated=0.5, agreement=0.5, confidence=0.5,
        model_name="test", model_fingerprint="0" * 64, prompt_version="1",
        random_seed=0, job=job,
    )  # fmt: skip
    find()
    assert Gap.objects.get().state == "drafted"
    Proposal.objects.filter(pk=proposal.pk).update(
        state=Proposal.State.REJECTED, decided_at=timezone.now()
    )


@pytest.mark.parametrize("found_first", [True, False])
def test_an_experts_reply_fills_the_gap_of_its_question(found_first):
    asker = make_user()
    refused = refuse(asker, WIRE[0])
    refuse(make_user(), WIRE[1])
    sent = escalate(refused.pk, user=asker)
    if found_first:
        find()

    reply(
        sent.pk,
        by=make_user(Role.SME),
        text="5 euros.",
        keep=EntryOptions(make_audience()),
    )
    find()

    gap = Gap.objects.get()
    sent.refresh_from_db()
    assert (gap.state, gap.entry) == ("drafted", sent.entry)


def test_what_a_voter_expected_is_shown_to_who_may_read_the_answer():
    vault = make_audience("vault", groups=["vault"])
    insider = make_user(Role.SME, groups=["vault"])
    hidden = make_entry("The limit is 900 euros.", audience=vault)
    answer = make_answer(insider, cited=(hidden,))
    vote(answer.pk, user=insider, is_up=False, expected_answer="It is 950 euros.")
    find()
    gap = Gap.objects.get()

    assert [v.expected_answer for v in gaps.expected_answers(gap, insider)] == ["It is 950 euros."]  # fmt: skip
    assert list(gaps.expected_answers(gap, make_user(Role.SME))) == []
