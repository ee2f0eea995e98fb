"""Judged rows for tests: every signal a gate needs, and what became of the question."""

import numpy as np

from qa.evaluation.judging import Judged


def make_judged(name, **changes):
    """Return an answered, right answer measured in shadow, but for the changes."""
    values = {
        "id": name,
        "group": "",
        "signals": make_signals(),
        "is_answerable": True,
        "is_correct": True,
        "is_answered": True,
        "gate": "",
        "reason": "",
        "measures": {},
        "milliseconds": 110.0,
        "model_milliseconds": 100.0,
        "answer_id": None,
    }
    return Judged(**values | changes)


def make_signals(ratio=0.5, verdict=0.9, **changes):
    """Return what every gate in shadow stores of a readable, supported draft."""
    return {
        "distance_over_confidence": ratio,
        "verified_ratio": ratio,
        "unverified_ratio": None,
        "nearest_distance": ratio,
        "readable": 1.0,
        "answer_characters": 20.0,
        "verdict": float(verdict >= 0.5),
        "verdict_probability": verdict,
        "not_a_refusal_in_prose": 1.0,
        "citations_verified": 1.0,
        "unsupported_facts": 0.0,
        **changes,
    }


def make_shadow_run(count, *, seed=0, groups=7, skill=1.0):
    """Return a run in shadow whose signals tell right from wrong as `skill` lets them."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        due = bool(number % 2)
        ease = random.normal() + (0.8 if due else -0.6)
        told = skill * ease + random.normal()
        correct = due and bool(random.random() < 1 / (1 + np.exp(-ease)))
        rows.append(
            make_judged(
                f"q{number:05}",
                group=f"article {number % groups}",
                signals=make_signals(
                    ratio=float(np.clip(0.9 - 0.2 * told, 0.05, 1.5)),
                    verdict=float(1 / (1 + np.exp(-told - random.normal()))),
                ),
                is_answerable=due,
                is_correct=correct,
                measures={"f1": float(correct)} if due else {},
            )
        )
    return rows
