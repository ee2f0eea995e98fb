"""What CBDR and CtrlA learn from: marked evidence, a probe that can tell, its own threshold."""

from dataclasses import replace

import pytest

from jobs.run import run_job
from jobs.services import enqueue
from probes.cards import ProbeFiles, ProbeKind
from probes.models import Probe
from probes.services import promote, register
from qa.exceptions import TrainingDataError
from qa.inference.closed_book_form import FORM
from qa.inference.known_by_probe import active_boundary_probe
from qa.inference.policy_models import (
    configured_reranker,
    load_closed_book_form,
    own_knowledge_fingerprint,
)
from qa.models import Policy
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.policies.services import active_policy, new_version
from qa.training.directions import apply_threshold, measured_threshold
from qa.training.labelled_questions import LabelledQuestion, reviewed_questions
from qa.training.past_questions import KIND
from qa.training.preferences import (
    Shifts,
    cannot_tell,
    preferences_of,
    prompts_of,
)
from tests.factories import make_entry, make_knowledge_base, put_in_force
from tests.probes import tiny_models
from tests.probes.direction_files import direction_probe_files, random_directions
from tests.probes.probe_files import activation_files, reranker_card
from workers.registry import HANDLERS

from .reviewed import judge, make_draft

pytestmark = pytest.mark.django_db


@pytest.fixture
def form(settings, tmp_path):
    """A tiny model as the language model."""
    settings.LANGUAGE_MODEL = str(
        tiny_models.save(tmp_path / "tiny", context_length=2_048)
    )
    settings.LANGUAGE_ADAPTER, settings.LANGUAGE_SERVER_URL = "none", ""
    return load_closed_book_form()


def test_reviews_give_right_texts_and_the_evidence_that_experts_marked():
    entry = make_entry("The Gold card costs 72 euros a year.")
    answer = make_draft(entry, question="What does the Gold card cost?")
    review = judge(answer, is_right=True)
    review.evidence_used = [answer.evidence.get().pk]
    review.ideal_answer = "72 euros"
    review.save()
    unmarked = make_draft(make_entry("The lift is slow."), question="Is it slow?")
    judge(unmarked, is_right=True)
    job = enqueue(KIND, {})
    run_job(job.pk, HANDLERS)

    found = {one.question: one for one in reviewed_questions(entry.knowledge_base)}

    gold, slow = found["What does the Gold card cost?"], found["Is it slow?"]
    assert gold.notes == gold.marked == (entry.text,)
    assert "72 euros" in gold.references
    assert (slow.notes, slow.marked) == (("The lift is slow.",), ())


def test_a_short_answer_says_what_a_reviewed_entry_says():
    entry = make_entry("The Gold card costs 72 euros a year, charged on its first day.")
    judge(make_draft(entry, question="What does the Gold card cost?"), is_right=True)
    run_job(enqueue(KIND, {}).pk, HANDLERS)

    (asked,) = reviewed_questions(entry.knowledge_base)
    (alone, _with_note) = prompts_of([replace(asked, references=(entry.text,))])

    # No answer of a few words contains an entry of many.
    assert alone.is_answered_by("72 euros")
    assert not alone.is_answered_by("80 euros")
    assert not alone.is_answered_by("The Gold card")
    # A file's reference is what has to be said.
    assert not LabelledQuestion("q", (entry.text,)).is_answered_by("72 euros")


def test_marked_evidence_is_what_helps_whatever_the_probe_says():
    asked = LabelledQuestion(
        "q", ("x",), ("first", "second", "third"), marked=("second",)
    )

    (found,) = preferences_of([Shifts(asked, 0.5, (0.2, -0.3, -0.1))])

    assert found.positives == ("second", "first")
    assert found.negatives == ("third",)


@pytest.mark.parametrize(
    ("value", "low", "can"),
    [
        (0.6, 0.55, True),
        (0.6, 0.5, False),
        (0.6, 0.44, False),
        (0.6, None, False),
        (1.0, None, True),
    ],
)
def test_a_probe_can_tell_only_where_chance_is_excluded(form, value, low, can):
    area = {"value": value, "low": low, "high": 0.7}
    files = activation_files(
        ProbeKind.BOUNDARY,
        language_model=form.model.fingerprint,
        form=FORM,
        opens_with_prompt=False,
        metrics={"with_notes": {"auroc": area}},
    )
    promote(register(files).pk, "active", by=None)
    held = active_boundary_probe(form)
    assert held is not None

    assert bool(cannot_tell(held)) is not can


def test_a_reranker_of_another_verifier_is_not_used(form, caplog):
    from probes.reranker.blend import Blend, blend_files

    metrics = {"recall_before": 0.5, "recall_after": 0.6}
    card = replace(
        reranker_card(),
        language_model=form.model.fingerprint,
        settings={"verifier": "f" * 64},
        metrics=metrics,
    )
    files: ProbeFiles = blend_files(Blend(1.0, 0.0, 1.0), card)
    promote(register(files).pk, "active", by=None)

    assert configured_reranker() is None
    assert "Train a reranker with this verifier" in caplog.text


def test_active_directions_bring_their_own_threshold(form):
    made = direction_probe_files(random_directions(form.model))
    promote(register(made).pk, "active", by=None)
    monitored = put_in_force(
        new_version(
            active_policy(make_knowledge_base()),
            by=None,
            scope=Scope.ADAPTIVE,
            retrieval_timing=RetrievalTiming.MONITORED,
            calibrated_own_knowledge=own_knowledge_fingerprint(
                RetrievalTiming.MONITORED
            ),
        )
    )
    probe = Probe.objects.get(kind=ProbeKind.DIRECTIONS)
    assert apply_threshold(probe, by=None) == []
    probe.metrics = {"min_token_confidence": -0.25}

    (after,) = apply_threshold(probe, by=None)

    assert (after.is_active, after.min_token_confidence) == (True, -0.25)
    assert after.version != monitored.version
    assert Policy.objects.get(pk=monitored.pk).is_active is False


@pytest.mark.slow
def test_a_threshold_is_for_the_steering_that_it_was_measured_with(form):
    made = direction_probe_files(random_directions(form.model))
    promote(register(made).pk, "active", by=None)
    put_in_force(
        new_version(
            active_policy(make_knowledge_base()),
            by=None,
            scope=Scope.ADAPTIVE,
            retrieval_timing=RetrievalTiming.MONITORED,
            steering=2.0,
            calibrated_own_knowledge=own_knowledge_fingerprint(
                RetrievalTiming.MONITORED
            ),
        )
    )
    probe = Probe.objects.get(kind=ProbeKind.DIRECTIONS)
    asked = [
        LabelledQuestion(
            f"What is {n % 10}?", ("e", "a") if n % 10 < 5 else ("never this",)
        )
        for n in range(20)
    ]

    found = measured_threshold(
        form.model, random_directions(form.model), asked, lambda *_: None
    )

    assert not found or found["steering"] == 2.0
    probe.metrics = {"min_token_confidence": -0.25}  # with the default steering
    assert apply_threshold(probe, by=None) == []
    probe.metrics["steering"] = 2.0
    (after,) = apply_threshold(probe, by=None)
    assert (after.steering, after.min_token_confidence) == (2.0, -0.25)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"kind": "boundary"}, "nothing to train on"),
        (
            {"kind": "reranker", "questions": [{"question": "q"}]},
            "not a labelled question",
        ),
        ({"kind": "directions", "knowledge_base": "none"}, "no knowledge base 'none'"),
    ],
)
def test_a_training_says_what_is_missing(parameters, said):
    from qa.training.jobs import train_method

    with pytest.raises(TrainingDataError, match=said):
        train_method(
            ProbeKind(parameters["kind"]),
            parameters,
            by=None,
            on_progress=lambda *_: None,
        )
