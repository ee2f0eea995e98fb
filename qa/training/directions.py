"""Training directions from files of statements, and measuring them.

The monitor's threshold is measured at the same time and set when they are activated:
confidence is in the directions' own units, so the default threshold would never stop an
answer of another model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from django.contrib.auth.models import User
from django.db.models import QuerySet

from accounts.ids import digest
from probes.cards import Json, ProbeFiles, ProbeKind
from probes.directions.fitting import Progress, fit_direction_set
from probes.directions.sets import DirectionSet, DirectionSettings, direction_files
from probes.directions.statements import (
    OWN_STATEMENTS,
    Trait,
    read_confident_statements,
    read_true_statements,
)
from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.models import Probe
from qa.calibration.adaptive_thresholds import (
    best_threshold,
    halves,
    monitor_auroc,
    watch,
)
from qa.evaluation.cases import Case, in_seeded_order
from qa.evaluation.metrics.selective import auroc
from qa.evaluation.metrics.text import normalised
from qa.inference.monitored_writer import SteeredWriter
from qa.inference.policy_models import own_knowledge_fingerprint
from qa.pipeline.policy import RetrievalTiming, default
from qa.policies.models import Policy
from qa.policies.services import activate, make_version
from qa.training.held_out import figure
from qa.training.labelled_questions import LabelledQuestion
from qa.training.probe import OnProgress, new_card


@dataclass(frozen=True, slots=True)
class DirectionStatements:
    """True statements, for honesty, and pairs of confident and unconfident ones."""

    true: Sequence[str]
    confident: Sequence[str]
    unconfident: Sequence[str]

    @property
    def sha256(self) -> str:
        return digest(*self.true, "", *self.confident, "", *self.unconfident)


@dataclass(frozen=True, slots=True)
class TrainedDirections:
    """Fitted directions, and their files for the registry.

    `sounding` is the AUROC of telling confident statements from others by their last
    token, without an instruction, which was not part of the fit; None if all are of one
    class.
    """

    directions: DirectionSet
    files: ProbeFiles
    sounding: float | None


def read_statements(
    true: Sequence[Path], sounding: Path = OWN_STATEMENTS
) -> DirectionStatements:
    confident, unconfident = read_confident_statements(sounding)
    return DirectionStatements(read_true_statements(*true), confident, unconfident)


def train_directions(
    model: WhiteBoxModel,
    statements: DirectionStatements,
    settings: DirectionSettings,
    *,
    measure: Callable[[DirectionSet], Mapping[str, Json]] = lambda _found: {},
    on_progress: Progress | None = None,
) -> TrainedDirections:
    """Fit both traits' directions on one model; `measure` adds to their metrics.

    As in the paper's release, each statement is paired with both instructions, however
    confident it sounds itself.
    """
    directions = fit_direction_set(
        model,
        {
            Trait.HONESTY: statements.true,
            Trait.CONFIDENCE: [*statements.confident, *statements.unconfident],
        },
        settings,
        on_progress=on_progress,
    )
    sounding = _sounding(model, directions, statements)
    card = new_card(
        ProbeKind.DIRECTIONS,
        language_model=model.fingerprint,
        language_model_name=model.name,
        data_sha256=statements.sha256,
        sizes={
            "true_statements": len(statements.true),
            "confident_statements": len(statements.confident),
            "unconfident_statements": len(statements.unconfident),
        },
        metrics={
            "sounding_auroc": sounding,
            "measured": "on statements that no direction was fitted on; sounding_auroc "
            "on all, without an instruction",
            **measure(directions),
        },
    )
    return TrainedDirections(
        directions, direction_files(directions, settings, card), sounding
    )


def _sounding(
    model: WhiteBoxModel, directions: DirectionSet, statements: DirectionStatements
) -> float | None:
    texts = [*statements.confident, *statements.unconfident]
    rows = [model.tokens.encode_text(text) for text in texts]
    passings = [Passing(ids, len(ids) - 1, len(ids)) for ids in rows]
    read = model.read_activations(passings, directions.taps)
    scores = np.concatenate([directions.confidence_of(row) for row in read])
    sounds_unsure = [number >= len(statements.confident) for number in range(len(rows))]
    return auroc(scores.tolist(), sounds_unsure)


# Half of them choose the threshold, half measure it.
MIN_QUESTIONS = 20


def measured_threshold(
    model: WhiteBoxModel,
    directions: DirectionSet,
    questions: Sequence[LabelledQuestion],
    on_progress: OnProgress,
) -> dict[str, Json]:
    """Return the threshold that best separates right from wrong answers, if any.

    Returns an empty dict if there are too few questions, or all answers are of one
    class. The threshold is valid for the steering at which the answers were written.
    """
    if len(questions) < MIN_QUESTIONS:
        return {}
    writer, steering = SteeredWriter(model, directions, fingerprint=""), _steering()
    cases = [
        Case(
            str(at),
            one.question,
            is_answerable=True,
            references=one.references,
            group=one.group or normalised(one.question),
        )
        for at, one in enumerate(questions)
    ]
    watched = watch(
        writer,
        in_seeded_order(cases, 0),
        steering=steering,
        by_answer=True,
        is_right=lambda case, said: questions[int(case.id)].is_answered_by(said),
        on_progress=lambda done, total: on_progress("Watching answers", done, total),
    )
    chooses, measures = halves(watched)
    if len({one.is_positive for one in chooses}) < 2 or all(
        one.weakest is None for one in chooses
    ):
        return {}
    return {
        "min_token_confidence": best_threshold(chooses),
        "steering": steering,
        "monitor_auroc": figure(*monitor_auroc(measures)),
    }


def _steering() -> float:
    """Return the steering of the active policies that monitor, or the default.

    The default applies if they do not agree on one.
    """
    rows = _monitored().values_list("steering", flat=True).distinct()
    found = list(rows[:2])
    return float(found[0] if len(found) == 1 else default("steering"))


def _monitored() -> QuerySet[Policy]:
    return Policy.objects.filter(
        is_active=True, retrieval_timing=RetrievalTiming.MONITORED
    )


def apply_threshold(probe: Probe, *, by: User | None) -> list[Policy]:
    """Apply the active directions' threshold to the active policies that monitor.

    Each gets a new version, which is activated. Nothing changes if no threshold was
    measured; policies with another steering than it was measured with are skipped, as
    steering changes which words are in doubt.
    """
    threshold = probe.metrics.get("min_token_confidence")
    steering = probe.metrics.get("steering", default("steering"))
    rows = _monitored().filter(steering=steering)
    if not isinstance(threshold, float) or not rows.exists():
        return []
    runs = own_knowledge_fingerprint(RetrievalTiming.MONITORED)
    return [
        activate(
            make_version(
                policy,
                by=by,
                min_token_confidence=threshold,
                calibrated_own_knowledge=runs,
            ),
            by=by,
        )
        for policy in rows.select_related("knowledge_base")
    ]
