"""From files of statements to directions in the registry, and what they are worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
from qa.evaluation.metrics.selective import auroc

from .probe import new_card


@dataclass(frozen=True, slots=True)
class DirectionStatements:
    """True statements, for honesty; confident and unconfident ones, in pairs."""

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
    token, without an instruction, which was no part of the fit; None where all are
    alike.
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

    As in the paper's release a statement is given both instructions, however confident
    it sounds by itself.
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
