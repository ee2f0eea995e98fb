"""Measure what abstention costs: capture, a second pass, and early refusal.

    python benchmarks/abstention.py [--questions N]

Runs on the configured white-box language model. The two sides of a comparison alternate
on the same question within one run, so that other load on the machine affects both; the
result is the median of the per-question ratios. The exit status is 1 if a limit is
exceeded.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
django.setup()

import numpy as np  # noqa: E402
from django.conf import settings  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from kb.types import Evidence  # noqa: E402
from probes.abstention.fitting import FitSettings, fit  # noqa: E402
from probes.abstention.probe import Labelled  # noqa: E402
from probes.language_model import WhiteBoxModel, load_model  # noqa: E402
from probes.taps import Tap  # noqa: E402
from qa.inference.grounded import GroundedLanguageModel  # noqa: E402
from qa.inference.grounded_form import answer_passing  # noqa: E402
from qa.inference.white_box import default_tap, middle_tap  # noqa: E402
from qa.pipeline.language_model import NO_CAPTURE, Capture, Prompt  # noqa: E402

CAPTURE_LIMIT = 1.03
SECOND_PASS_LIMIT = 0.55
EARLY_LIMIT = 0.10
ROUNDS = 3
SUBJECTS = (
    "The town of Oppeln", "The river Drawa", "The Gold card", "The library of Wels",
    "The observatory on Mount Kitt", "The ferry to Rügen", "The Rosetta stone",
    "The bridge at Remagen",
)  # fmt: skip
FACTS = (
    "{} was first mentioned in writing in the year {year}, when a merchant from the "
    "north described it in a letter to his brother.",
    "{} is looked after by {staff} people, most of whom work there in summer only and "
    "are paid by the neighbouring district.",
    "Every year about {visitors} visitors come to see it, fewer than in the years "
    "before the new road was built.",
    "The yearly cost of keeping it open is {cost} euros, of which the state pays a half.",
)
QUESTIONS = (
    "When was it first mentioned in writing?",
    "How many people look after it?",
    "How many visitors come every year?",
    "What does it cost a year to keep it open?",
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides of a comparison: median milliseconds of each, and the median ratio."""

    what: str
    first: float
    second: float
    ratio: float
    limit: float | None


def compared(
    what: str,
    sides: Sequence[tuple[Callable[[], object], Callable[[], object]]],
    limit: float | None,
    *,
    rounds: int = ROUNDS,
) -> Compared:
    """Time both sides alternately for each question; the ratio is second over first.

    The first two questions warm up; with a single round they are left out of the
    result.
    """
    for first, second in sides[:2]:
        first()
        second()
    firsts, seconds, ratios = [], [], []
    for number, (first, second) in enumerate(sides[0 if rounds > 1 else 2 :]):
        taken: tuple[list[float], list[float]] = ([], [])
        for round_ in range(rounds):
            # Alternate which side runs first, because the first finds colder caches.
            order = (0, 1) if (number + round_) % 2 else (1, 0)
            for side in order:
                taken[side].append(milliseconds((first, second)[side]))
        one, other = (statistics.median(times) for times in taken)
        firsts.append(one)
        seconds.append(other)
        ratios.append(other / one)
    return Compared(
        what,
        statistics.median(firsts),
        statistics.median(seconds),
        statistics.median(ratios),
        limit,
    )


def milliseconds(work: Callable[[], object]) -> float:
    """Return how many milliseconds `work` takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def prompts(count: int, *, first: int = 0) -> list[Prompt]:
    """Return distinct questions with four pieces of evidence each."""
    made = []
    for number in range(first, first + count):
        subject = SUBJECTS[number % len(SUBJECTS)]
        values = {
            "year": 1100 + 7 * number,
            "staff": 10 + number,
            "visitors": f"{3 + number},500",
            "cost": f"{20 + number},000",
        }
        texts = [fact.format(subject, **values) for fact in FACTS]
        pieces = tuple(_piece(place, text) for place, text in enumerate(texts, 1))
        asked = f"{subject}: {QUESTIONS[number % len(QUESTIONS)]}"
        made.append(Prompt(asked, pieces, "en"))
    return made


def capturing(
    model: GroundedLanguageModel, asked: Sequence[Prompt], place: Tap
) -> Compared:
    """Compare generation with and without capturing the activations the probes read."""
    capture = Capture(answer=(place,), prompt=(place,))
    sides = [
        (
            lambda prompt=prompt: model.generate(prompt, NO_CAPTURE),
            lambda prompt=prompt: model.generate(prompt, capture),
        )
        for prompt in asked
    ]
    return compared("answer with capture / without", sides, CAPTURE_LIMIT)


def second_pass(
    model: WhiteBoxModel,
    asked: Sequence[Prompt],
    answers: Sequence[str],
    place: Tap,
    limit: float | None,
) -> Compared:
    """Compare a second pass that stops at the tapped block with one through all."""
    last = Tap(model.blocks - 1)
    passings = [
        answer_passing(model.tokens, prompt, answer)
        for prompt, answer in zip(asked, answers, strict=True)
    ]
    sides = [
        (
            lambda passing=passing: model.read_activations([passing], [last]),
            lambda passing=passing: model.read_activations(
                [passing], [Tap(place.layer)]
            ),
        )
        for passing in passings
    ]
    return compared(f"second pass to block {place.layer} / to the last", sides, limit)


def refusing_early(
    model: GroundedLanguageModel, asked: Sequence[Prompt], place: Tap, rounds: int
) -> Compared:
    """Compare a refusal in the middle of the prompt pass with a full answer.

    With one round, the model has never read the evidence before. With more, it has
    cached each piece of evidence, which speeds up the answer but not the refusal.
    """
    refusing = Capture(prompt=(place,), watch=lambda _place, _state: False)
    sides = [
        (
            lambda prompt=prompt: model.generate(prompt),
            lambda prompt=prompt: model.generate(prompt, refusing),
        )
        for prompt in asked
    ]
    known = "new" if rounds == 1 else "known"
    return compared(
        f"early refusal at block {place.layer} / full answer, {known} evidence",
        sides, EARLY_LIMIT, rounds=rounds,
    )  # fmt: skip


def probe_itself(
    model: GroundedLanguageModel, asked: Sequence[Prompt], place: Tap
) -> Compared:
    """Compare the time the LSTM takes for an answer with the time to generate it."""
    capture = Capture(answer=(place,))
    traces = [model.generate(prompt, capture).trace for prompt in asked]
    kept = [trace.answer[place] for trace in traces if trace is not None]
    random = np.random.default_rng(0)
    # The probe's run time does not depend on its weights, so random data will do.
    rows = [
        Labelled(random.normal(size=(4, kept[0].shape[1])).astype("f4"), number % 2 > 0)
        for number in range(400)
    ]
    probe = fit(
        rows[:200], rows[200:],
        language_model=model.model.fingerprint,
        tap=Tap(place.layer),
        settings=FitSettings(epochs=1),
    )  # fmt: skip
    sides = [
        (
            lambda prompt=prompt: model.generate(prompt),
            lambda values=values: list(probe.along([values])),
        )
        for prompt, values in zip(asked, kept, strict=True)
    ]
    return compared("the LSTM itself / full answer", sides, None)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--questions", type=int, default=24)
    count = parser.parse_args().questions
    model = load_model(settings.LANGUAGE_MODEL)
    writer = GroundedLanguageModel(model)
    usual, middle = default_tap(model.blocks), middle_tap(model.blocks)
    asked = prompts(count)
    answers = [writer.generate(prompt) for prompt in asked]
    spans = [answer.short_answer for answer in answers]
    found = [
        capturing(writer, asked, usual),
        second_pass(model, asked, spans, middle, SECOND_PASS_LIMIT),
        second_pass(model, asked, spans, usual, None),
        *(
            refusing_early(writer, prompts(count, first=first), place, rounds)
            for first, place, rounds in (
                (1000, middle, 1),
                (2000, usual, 1),
                (0, middle, ROUNDS),
                (0, usual, ROUNDS),
            )
        ),
        probe_itself(writer, asked, usual),
    ]
    tokens = [answer.answer_tokens for answer in answers]
    read = [answer.prompt_tokens for answer in answers]
    print(
        f"{model.name}{' with its adapter' if model.adapter else ''}, {model.dtype}, "
        f"{settings.TORCH_THREADS} threads; probes at block {usual.layer} of {model.blocks}; "
        f"{count} questions, medians of {statistics.median(read):.0f} tokens read and "
        f"{statistics.median(tokens):.0f} written"
    )
    _print(found)
    return int(any(one.limit is not None and one.ratio > one.limit for one in found))


def _print(found: Sequence[Compared]) -> None:
    table = Table(box=None)
    for name in ("second / first", "first", "second", "ratio", "limit", ""):
        is_words = "/" in name
        table.add_column(name, justify="left" if is_words else "right", no_wrap=True)
    for one in found:
        is_over = one.limit is not None and one.ratio > one.limit
        table.add_row(
            one.what,
            f"{one.first:.1f} ms",
            f"{one.second:.1f} ms",
            f"{one.ratio:.3f}",
            "-" if one.limit is None else f"{one.limit:.2f}",
            "over" if is_over else "",
        )
    Console(width=120).print(table)


def _piece(number: int, text: str) -> Evidence:
    return Evidence(
        entry_id=number, revision_id=number, text=text, question="", confidence=1.0,
        is_verified=True, distance=0.5, vector_rank=1, text_rank=None, score=0.1,
        document_title="", section="", verified_at=None, valid_until=None,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
