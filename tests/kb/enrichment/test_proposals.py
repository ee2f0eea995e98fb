"""Proposals: nothing enriched is verified by itself, and a decision is made once."""

import pytest
from django.db import transaction

from accounts.roles import Role
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.enrichment.agents import Signals
from kb.enrichment.background import KIND, checked, enrich_in_background
from kb.enrichment.proposals import Plan, decide
from kb.enrichment.services import MIN_DECISIONS, enrich, fit_trust
from kb.entries.states import restore_entry, retire_entry, verify_entry
from kb.entries.values import UNVERIFIED_CONFIDENCE
from kb.exceptions import InvalidKnowledgeError, ProposalDecidedError
from kb.models import Entry, Proposal
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.kb.enrichment.scripted_writer import CAPITALS, ScriptedWriter, capitals

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PERU, KENYA, NORWAY, JAPAN = CAPITALS


def plan(*seeds, **options):
    return checked(
        Plan(
            knowledge_base=make_knowledge_base(),
            audience=make_audience(),
            seeds=seeds or tuple(CAPITALS),
            **{"per_seed": 0, **options},
        )
    )


def propose(*seeds, writer=None, **options):
    """Propose from seeds; return the last progress."""
    writer = writer or ScriptedWriter(capitals)
    told = list(enrich(plan(*seeds, **options), writer, writing=transaction.atomic))
    return told[-1]


def proposal(question=PERU):
    propose(question)
    return Proposal.objects.get(question=question)


def test_a_proposal_is_an_entry_that_nobody_verified():
    made = proposal()

    entry = made.entry
    assert (entry.state, entry.origin) == ("proposed", "enriched")
    assert entry.text == made.sentence == "The capital of Peru is Lima."
    assert entry.verified_by is None
    assert 0 < entry.confidence == made.confidence < 1
    assert entry.embeddings.count() == 1
    assert entry.revisions.get().author is None
    assert made.model_name == "scripted"
    assert made.prompt_version


def test_without_a_faithful_sentence_it_is_an_entry_of_question_and_answer():
    def reply(form, about):
        said = dict(capitals(form, about))
        return {"sentence": "Lima is not Peru."} if form == "sentence" else said

    propose(PERU, writer=ScriptedWriter(reply))

    made = Proposal.objects.get()
    assert (made.entry.question, made.entry.text) == (PERU, "Lima")
    decided = decide(made.pk, by=make_curator(), decision="approve")
    assert decided.state == "approved"


def test_nothing_is_proposed_twice_nor_answered_again():
    first = propose()
    writer = ScriptedWriter(capitals)

    again = propose(writer=writer)

    assert first.proposed == 4
    assert (again.proposed, again.counts["repeated"]) == (0, 4)
    assert writer.asked == []


def test_what_is_known_already_is_left_out():
    make_entry("The capital of Peru is Lima.")

    found = propose(PERU, KENYA)

    assert (found.proposed, found.counts["known"]) == (1, 1)


def test_the_nearest_known_entries_are_kept():
    known = make_entry("The capital of Peru was Cuzco.")

    nearest = proposal().nearest

    assert nearest[0][0] == known.pk
    assert 0 < nearest[0][1] < 2


def test_no_more_are_made_than_were_asked_for():
    assert propose(count=3).proposed == 3


def test_a_batch_that_breaks_off_writes_nothing_and_goes_on():
    with transaction.atomic():
        propose(PERU)
        transaction.set_rollback(True)
    assert Proposal.objects.count() == Entry.objects.count() == 0

    assert propose(PERU).proposed == 1


def test_an_approved_entry_is_in_review_and_not_verified():
    by = make_curator()

    made = decide(decision="approve", proposal_id=proposal().pk, by=by)

    entry = Entry.objects.get(pk=made.entry_id)
    assert (made.state, made.decided_by) == ("approved", by)
    assert (entry.state, entry.confidence) == ("in_review", UNVERIFIED_CONFIDENCE)
    assert entry.verified_by is None


def test_a_curator_who_verifies_vouches_for_it_himself():
    by = make_curator()

    made = decide(
        decision="verify",
        proposal_id=proposal().pk,
        by=by,
        text="Lima is Peru's capital.",
    )

    entry = Entry.objects.get(pk=made.entry_id)
    assert made.state == "edited"
    assert (entry.state, entry.confidence, entry.verified_by) == ("verified", 1.0, by)
    assert entry.text == "Lima is Peru's capital."
    assert made.sentence == "The capital of Peru is Lima."


def test_a_rejected_one_is_retired_and_never_comes_back():
    made = decide(
        decision="reject", proposal_id=proposal().pk, by=make_curator(), reason="Old."
    )

    assert (made.state, made.reason) == ("rejected", "Old.")
    assert Entry.objects.get(pk=made.entry_id).state == "retired"
    assert propose(PERU).proposed == 0


def test_a_decision_is_made_once():
    made = proposal()
    decide(decision="reject", proposal_id=made.pk, by=make_curator())

    with pytest.raises(ProposalDecidedError, match="already rejected"):
        decide(decision="approve", proposal_id=made.pk, by=make_curator())


def test_a_text_that_may_not_be_written_decides_nothing():
    made = proposal()

    with pytest.raises(InvalidKnowledgeError):
        decide(decision="approve", proposal_id=made.pk, by=make_curator(), text="\x00")

    made.refresh_from_db()
    assert made.state == "proposed"


@pytest.mark.parametrize(
    ("change", "state"), [(verify_entry, "approved"), (retire_entry, "rejected")]
)
def test_what_is_decided_about_the_entry_is_decided_about_the_proposal(change, state):
    made = proposal()
    by = make_curator()

    change(entry_id=made.entry_id, by=by)

    made.refresh_from_db()
    assert (made.state, made.decided_by) == (state, by)


def test_a_restored_entry_is_no_longer_the_models():
    made = proposal()
    retire_entry(entry_id=made.entry_id, by=make_curator())

    assert restore_entry(entry_id=made.entry_id, by=make_curator()).state == "in_review"


def test_only_a_models_entry_can_be_proposed():
    with pytest.raises(InvalidKnowledgeError, match="state"):
        make_entry(state="proposed")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"per_seed": 21}, "per_seed"),
        ({"count": 0}, "count"),
        ({"samples": 0}, "samples"),
    ],
)
def test_a_plan_is_bounded(options, field):
    with pytest.raises(InvalidKnowledgeError) as caught:
        plan(PERU, **options)
    assert caught.value.field == field


def test_a_plan_needs_a_seed():
    with pytest.raises(InvalidKnowledgeError, match="seeds"):
        plan("  ", "")


def test_with_few_decisions_the_least_signal_counts():
    made = proposal()

    assert fit_trust(made.model_fingerprint).decisions == 0
    assert made.confidence == pytest.approx(0.6 * 0.9)


def test_curators_decisions_calibrate_the_confidence_of_the_same_model():
    made = proposal()
    rows = []
    for number in range(MIN_DECISIONS):
        is_right = number % 2 == 0
        entry = make_entry(f"Fact {number}.", state="in_review")
        rows.append(
            Proposal(
                knowledge_base=made.knowledge_base, entry=entry, seed_question="s",
                question="q", question_sha256=str(number), answer="a", sentence="s",
                stated=0.9, agreement=0.9 if is_right else 0.1, likelihood=0.5,
                confidence=0.5, model_name="m", model_fingerprint="f" * 64,
                prompt_version=made.prompt_version, random_seed=0,
                state="approved" if is_right else "rejected",
                decided_at=made.created_at,
            )
        )  # fmt: skip
    Proposal.objects.bulk_create(rows)

    trust = fit_trust("f" * 64)
    sure, unsure = (
        trust.confidence(made_of)
        for made_of in (signals(agreement=0.9), signals(agreement=0.1))
    )

    assert trust.decisions == MIN_DECISIONS
    assert 0 < unsure < 0.35
    assert 0.65 < sure < 1
    assert fit_trust(made.model_fingerprint).decisions == 0


def signals(*, agreement):
    return Signals(0.9, agreement, 0.5)


def test_the_job_proposes_and_tells_how_far_it_is():
    job = started(tuple(CAPITALS))

    run_job(job.pk, handlers(ScriptedWriter(capitals)))

    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("succeeded", 4, 4)
    assert job.result["proposed"] == 4
    assert {p.job_id for p in Proposal.objects.all()} == {job.pk}


def test_a_killed_job_goes_on_without_proposing_anything_twice():
    seeds = tuple(f"What is the capital of {name}?" for name in "ABCDEFGHIJKLMNOPQRST")
    replies = {seed: f"Town {seed[-2] * 5}" for seed in seeds}

    def reply(form, about):
        said = {"answer": replies[about], "confidence": 0.9}
        return {"sentence": "x"} if form == "sentence" else said

    job = started(seeds, samples=1)
    asked = iter([False, False, True])
    run_job(job.pk, handlers(ScriptedWriter(reply)), is_stopping=lambda: next(asked))
    job.refresh_from_db()
    assert (job.state, job.done) == ("queued", 16)

    writer = ScriptedWriter(reply)
    run_job(job.pk, handlers(writer))

    job.refresh_from_db()
    assert (job.state, job.done, job.result["proposed"]) == ("succeeded", 20, 20)
    assert {about for _, about in writer.asked} == set(seeds[16:])


def test_a_job_with_wrong_parameters_says_what_is_wrong():
    job = enqueue(KIND, {"knowledge_base": "nowhere", "seeds": ["a"]})

    with pytest.raises(InvalidKnowledgeError):
        run_job(job.pk, handlers(ScriptedWriter(capitals)))

    job.refresh_from_db()
    assert "nowhere" in job.error


def handlers(writer):
    def work(run):
        return enrich_in_background(run, load_writer=lambda: writer)

    return {KIND: work}


def started(seeds, **options) -> Job:
    make_knowledge_base()
    make_audience()
    parameters = {
        "knowledge_base": "cards",
        "audience": "everyone",
        "seeds": list(seeds),
        "per_seed": 0,
        **options,
    }
    return enqueue(KIND, parameters, owner=make_user(Role.CURATOR))
