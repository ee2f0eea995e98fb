"""All of CBDR in one run: probe, preferences, reranker and gate, and the gain of each.

Probe, preferences, thresholds and test have articles of their own, so the reranker and
the gate are measured on articles and questions that nothing was fitted to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from sentence_transformers import CrossEncoder

from probes.abstention.files import probe_from
from probes.abstention.probe import AbstentionProbe
from probes.cards import Json
from probes.reranker.fitting import RerankerSettings, fit_reranker
from probes.reranker.scoring import open_encoder, scores_of
from qa.evaluation.metrics.intervals import Difference, McNemar, clusters_of, mcnemar
from qa.evaluation.metrics.text import contains_gold
from qa.exceptions import EvaluationDataError
from qa.inference.closed_book_form import ClosedBookForm
from qa.training.boundary import BoundaryTraining, train_boundary
from qa.training.labelled_questions import LabelledQuestion
from qa.training.preferences import (
    Shifts,
    answered,
    base_of,
    preferences_of,
    prompts_of,
    shifts_of,
)
from studies.cbdr.timing.curve import retrieval_curve, retrieves
from studies.figures import share_difference
from studies.study import OnProgress

from .questions import Part, Parted
from .ranking import Compared, Ordered, compared

FOUND: Final = "as found"
BASE: Final = "base"
TUNED: Final = "reranked"
_HELD_OUT: Final = 4  # every fourth preference is held out to stop the fit


@dataclass(frozen=True, slots=True)
class Answers:
    """A part's questions, answered closed-book and with the first note of each order.

    Attributes:
        groups: Each question and its group.
        known_probability: The boundary probe's, in [0, 1].
        alone: Whether the closed-book answer is right.
        noted: By order, whether the answer with the first note of that order is right.
    """

    groups: Sequence[tuple[str, str]]
    known_probability: Sequence[float]
    alone: Sequence[bool]
    noted: Mapping[str, Sequence[bool]]


@dataclass(frozen=True, slots=True)
class Way:
    """One way of answering the test's questions.

    Attributes:
        retrieval_rate: Share of the questions that retrieve, in [0, 1].
        accuracy: Compared with always retrieving, notes in the order found.
        mcnemar: Of the same comparison.
    """

    name: str
    retrieval_rate: float
    accuracy: Difference
    mcnemar: McNemar


@dataclass(frozen=True, slots=True)
class Results:
    """All figures of one run.

    Attributes:
        probe: Metrics of the boundary probe, out of fold on its own part.
        held_out: Metrics of the reranker on the preferences held out of its fit.
        min_known: Threshold by order of the notes, chosen on the calibration part for
            the best accuracy, then the fewest retrievals; None always retrieves.
        counts: Counts by name.
        by_shift: Orders compared with the one found; relevant are notes that raise the
            confidence.
        by_reference: The same; relevant are notes that contain a reference.
        ways: Ways of answering; the first always retrieves, notes as found.
    """

    probe: Mapping[str, Json]
    held_out: Mapping[str, float]
    min_known: Mapping[str, float | None]
    counts: Mapping[str, int]
    by_shift: Sequence[Compared]
    by_reference: Sequence[Compared]
    ways: Sequence[Way]
    data: str


def run_study(
    form: ClosedBookForm,
    parted: Parted,
    reranker: RerankerSettings,
    *,
    base: str,
    margin: float,
    device: str,
    on_progress: OnProgress,
) -> Results:
    """Fit and measure; the same data and seed give the same figures.

    Args:
        base: What the reranker starts from: "bundled" for the embedder's weights, a
            directory, or a name that sentence-transformers knows.
        margin: As in `preferences_of`.
    """
    rows = answered(
        form,
        [
            *prompts_of(map(_with_tried, parted.of_texts[Part.BOUNDARY])),
            # No note answers these, and most notes above are such cases already.
            *prompts_of(parted.of_others[Part.BOUNDARY], notes=0),
        ],
        on_progress=partial(on_progress, "Answering to fit the probe"),
    )
    trained = train_boundary(form, rows, BoundaryTraining(), on_progress=on_progress)
    probe = probe_from(trained.files, language_model=form.model.fingerprint)
    moved, tested = (
        shifts_of(
            form,
            probe,
            parted.of_texts[part],
            on_progress=partial(on_progress, f"Asking for {part.value}"),
        )
        for part in (Part.PREFERENCES, Part.TEST)
    )
    preferences = preferences_of(moved, margin=margin)
    fitted = fit_reranker(
        base_of(base),
        [row for n, row in enumerate(preferences) if n % _HELD_OUT],
        preferences[::_HELD_OUT],
        reranker,
        device=device,
        on_step=lambda step: on_progress("Fitting", step.number, step.total),
    )
    unfitted = open_encoder(
        base_of(base), max_tokens=reranker.max_tokens, device=device
    )
    by_shift, by_reference = _orders(tested, unfitted, fitted.encoder, margin)
    answering = partial(on_progress, "Answering")
    calibration, test = (
        _answers(form, probe, fitted.encoder, parted.all_of(part), answering)
        for part in (Part.CALIBRATION, Part.TEST)
    )
    min_known = {
        order: _threshold(calibration.known_probability, calibration.alone, right)
        for order, right in calibration.noted.items()
    }
    return Results(
        probe=trained.metrics,
        held_out=fitted.metrics,
        min_known=min_known,
        counts={
            **{f"questions, {part.value}": len(parted.all_of(part)) for part in Part},
            "prompts that the probe was fitted on": len(rows),
            "of these answered rightly": sum(row.is_right for row in rows),
            "preferences": len(preferences),
            "test questions that a note helps": len(by_shift),
        },
        by_shift=_compared(by_shift),
        by_reference=_compared(by_reference),
        ways=_ways(test, min_known),
        data=parted.data,
    )


def _with_tried(asked: LabelledQuestion) -> LabelledQuestion:
    """Keep a question's nearest note that answers it and its nearest that does not.

    Few of the nearest notes answer, so the probe would have too little to learn from.
    """
    kinds = {
        bool(contains_gold(note, asked.references)): note
        for note in reversed(asked.notes)
    }
    return replace(asked, notes=tuple(kinds.values()))


def _answers(
    form: ClosedBookForm,
    probe: AbstentionProbe,
    encoder: CrossEncoder,
    questions: Sequence[LabelledQuestion],
    on_progress: Callable[[int, int], None],
) -> Answers:
    shifts = shifts_of(form, probe, [q.without_notes for q in questions])
    found = [q.notes[0] for q in questions]
    ranked = [_ranked(encoder, q.question, q.notes)[0] for q in questions]
    # The two orders often start with the same note: that prompt is answered once.
    prompts = dict.fromkeys(
        replace(q, notes=notes)
        for q, one, other in zip(questions, found, ranked, strict=True)
        for notes in ((), (one,), (other,))
    )
    done = answered(form, [*prompts], on_progress=on_progress)
    is_right = {(row.prompt.question, row.prompt.notes): row.is_right for row in done}
    return Answers(
        groups=[(q.question, q.group) for q in questions],
        known_probability=[one.alone for one in shifts],
        alone=[is_right[q.question, ()] for q in questions],
        noted={
            order: [
                is_right[q.question, (note,)]
                for q, note in zip(questions, notes, strict=True)
            ]
            for order, notes in ((FOUND, found), (TUNED, ranked))
        },
    )


def _ranked(encoder: CrossEncoder, question: str, notes: Sequence[str]) -> list[str]:
    scores = scores_of(encoder, [(question, note) for note in notes])
    ranked = sorted(zip(scores, notes, strict=True), key=lambda pair: -pair[0])
    return [note for _, note in ranked]


def _orders(
    shifts: Sequence[Shifts],
    base: CrossEncoder,
    fitted: CrossEncoder,
    margin: float,
) -> tuple[list[Ordered], list[Ordered]]:
    """Return the questions with a note that helps, and those with one that answers."""
    by_shift: list[Ordered] = []
    by_reference: list[Ordered] = []
    for one in shifts:
        asked = one.asked
        orders = {
            FOUND: asked.notes,
            BASE: _ranked(base, asked.question, asked.notes),
            TUNED: _ranked(fitted, asked.question, asked.notes),
        }
        holding = [n for n in asked.notes if contains_gold(n, asked.references)]
        for relevant, into in (
            (one.helping(margin), by_shift),
            (holding, by_reference),
        ):
            if relevant:
                into.append(Ordered(asked.group, tuple(relevant), orders))
    return by_shift, by_reference


def _compared(questions: Sequence[Ordered]) -> list[Compared]:
    if not questions:
        raise EvaluationDataError(
            "No note helps with any test question: there is nothing to rank. Ask more "
            "questions, or lower the margin."
        )
    clusters = clusters_of([(str(n), q.group) for n, q in enumerate(questions)])
    return compared(questions, clusters, first=FOUND)


def _threshold(
    known_probability: Sequence[float], alone: Sequence[bool], noted: Sequence[bool]
) -> float | None:
    curve = retrieval_curve(known_probability, alone, noted)
    return curve.threshold[curve.cheapest(within=0.0)]


def _ways(test: Answers, min_known: Mapping[str, float | None]) -> list[Way]:
    clusters = clusters_of(test.groups)
    first = test.noted[FOUND]
    ways = []
    for name, right, rate in _rights(test, min_known):
        difference = share_difference(first, right, clusters)
        ways.append(Way(name, rate, difference, mcnemar(first, right)))
    return ways


def _rights(
    test: Answers, min_known: Mapping[str, float | None]
) -> list[tuple[str, list[bool], float]]:
    """Return the name, right answers and retrieval rate of each way of answering."""
    rows = [
        (f"always retrieve, {order}", list(noted), 1.0)
        for order, noted in test.noted.items()
    ]
    for order, noted in test.noted.items():
        sent = [retrieves(value, min_known[order]) for value in test.known_probability]
        right = [
            with_note if is_sent else alone
            for is_sent, with_note, alone in zip(sent, noted, test.alone, strict=True)
        ]
        rows.append((f"gate, {order}", right, sum(sent) / len(sent)))
    return [*rows, ("never retrieve", list(test.alone), 0.0)]
