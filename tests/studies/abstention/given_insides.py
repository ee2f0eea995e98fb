"""Answers on a few articles whose activations tell, more or less, whether they are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from probes.taps import Activations, Tap
from studies.abstention.scores import Examined, examine
from tests.qa.evaluation.judged_rows import make_judged, make_signals

WIDTH = 6


@dataclass(frozen=True, slots=True)
class GivenInsides:
    """`Insides` of a model with six blocks that was never run."""

    right: Sequence[bool]
    language_model: str = "a" * 64
    blocks: int = 6

    def of_sequences(
        self, place: Tap, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """The block at two thirds tells most, less evidence less."""
        told = {2: 0.7, 3: 1.0, 5: 0.3}[place.layer]
        told *= {None: 1.0, 3: 0.8, 1: 0.3}[pieces]
        return self._read(place.layer + 10 * (pieces or 0), told)

    def of_prompts(self, place: Tap) -> Sequence[Activations]:
        return [row[:1] for row in self._read(99, 0.6)]

    def own_words(self) -> Mapping[str, Sequence[float]]:
        random = np.random.default_rng(3)
        return {"p_true": random.random(len(self.right)).tolist()}

    def _read(self, seed: int, told: float) -> list[Activations]:
        random = np.random.default_rng(seed)
        rows = []
        for right in self.right:
            values = random.normal(size=(int(random.integers(2, 5)), WIDTH))
            values[:, 1] += told if right else -told
            rows.append(values.astype(np.float32))
        return rows


def given_answers(count: int, *, articles: int = 9, seed: int = 0):
    """Return answers in shadow, of which distance and verdict tell a little."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        due = bool(random.random() < 0.6)
        right = due and bool(random.random() < 0.7)
        told = random.normal() + (0.5 if right else -0.5)
        rows.append(
            make_judged(
                f"q{number:04}",
                group=f"article {number % articles}",
                signals=make_signals(
                    ratio=float(np.clip(0.8 - 0.1 * told, 0.05, 1.5)),
                    verdict=float(1 / (1 + np.exp(-random.normal() - told / 2))),
                    log_probability=float(-abs(random.normal())),
                    # As a probe in force would store it; nobody may read it.
                    answer_confidence=float(right),
                ),
                is_answerable=due,
                is_correct=right,
                measures={"rouge_l": 0.9 if right else 0.2} if due else {},
            )
        )
    return rows


def given_examined(count: int) -> Examined:
    """Return such answers, dealt out to three folds."""
    answers = given_answers(count)
    rouge = [row.measures.get("rouge_l") for row in answers]
    return examine(answers, rouge, folds=3, seed=0)
