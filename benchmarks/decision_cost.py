"""What it takes to decide whether to retrieve, beyond writing the answer itself.

    python -m benchmarks.decision_cost [--questions N]

On the configured white-box language model, in the own-knowledge form. All ways of deciding
are tried by turns on each question, in an order that changes, so that what else the
machine does falls on all of them; times are medians over the questions, each the median of
its rounds. Passes and tokens are counted where the model runs, and held to limits: CBDR
and DH-ICL decide within one prompt pass and write nothing, and CBDR goes on from it, so
that an answer takes no pass more than without deciding, and at most so much more time.
The exit status is 1 where a limit is not kept.
"""

# ruff: noqa: E402  # Django is set up before anything that needs it is imported
import argparse
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")

import django

django.setup()

import numpy as np
from django.conf import settings
from rich.console import Console
from rich.table import Table

from probes.abstention.fitting import fit
from probes.abstention.probe import Labelled
from probes.language_model import WhiteBoxModel
from qa.inference.by_history import SelfKnowledgeByHistory
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.known_by_probe import BoundaryProbe, SelfKnowledgeByProbe
from qa.inference.policy_models import history_form, load_closed_book_form
from qa.inference.white_box import middle_tap
from qa.pipeline.history import JudgedQuestion, KnownQuestion
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.pipeline.values import Question
from qa.training.boundary import SETTINGS
from studies.cbdr.timing.deciders import Undecided

ROUNDS = 3
NEVER, CBDR, DH_ICL = "never", "CBDR", "DH-ICL"
GOING_ON_LIMIT = 1.05
SUBJECTS = (
    "the capital of Norway", "the river through Prague", "the author of Emma",
    "the first king of Prussia", "the largest lake in Africa", "the inventor of dynamite",
    "the currency of Peru", "the tallest tree on earth", "the painter of Guernica",
    "the founder of Carthage", "the deepest sea trench", "the language of Angola",
)  # fmt: skip
FORMS = ("what is {}", "Which one is {}?", "tell me who or what is {}", "name {}")


@dataclass(frozen=True, slots=True)
class Taken:
    """What deciding took on one question, and going on to the answer after it.

    Attributes:
        decide: Milliseconds.
        answer: Milliseconds after that.
        passes: Prompt passes of deciding, and of both.
        read: Tokens that deciding read in prompt passes.
        written: Tokens that deciding wrote.
    """

    decide: float
    answer: float
    passes: tuple[int, int]
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians of one way of deciding, and its median ratios to just answering."""

    decide: float
    more: float
    ratio: float
    decide_passes: float
    more_passes: float
    read: float
    written: float


class GivenHistory:
    """Hands over past questions without searching; the search is no model's cost."""

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return other questions than the one asked, every other one known."""
        every = asked(len(SUBJECTS) * len(FORMS))
        others = [text for text in every if text != question.text]
        return [KnownQuestion(t, n % 2 == 0) for n, t in enumerate(others)][:limit]

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        """Return nothing."""
        return ()


def asked(count: int) -> list[str]:
    """Return questions, no two of the first few dozen alike."""
    size = len(SUBJECTS)
    return [
        FORMS[number // size % len(FORMS)].format(SUBJECTS[number % size])
        for number in range(count)
    ]


def ways(form: ClosedBookForm) -> dict[str, SelfKnowledge]:
    """Return every way of deciding, just answering first."""
    return {
        NEVER: Undecided(form),
        "log-probability": SelfKnowledgeByDraft(form),
        CBDR: SelfKnowledgeByProbe(form, _probe(form)),
        DH_ICL: SelfKnowledgeByHistory(form, history_form(), GivenHistory()),
    }


def taken(model: WhiteBoxModel, way: SelfKnowledge, question: str) -> Taken:
    """Decide and answer once."""
    with model.metered() as meter:
        began = time.perf_counter()
        considered = way.consider(Question(question))
        decided = time.perf_counter()
        passes, read, written = meter.prompt_passes, meter.prompt_tokens, meter.steps
        considered.answer()
        ended = time.perf_counter()
    return Taken(
        (decided - began) * 1000,
        (ended - decided) * 1000,
        (passes, meter.prompt_passes),
        read,
        written,
    )


def measured(
    model: WhiteBoxModel, by: Mapping[str, SelfKnowledge], questions: Sequence[str]
) -> dict[str, list[Taken]]:
    """Try all ways by turns; the median of each question's rounds, for each way."""
    for way in by.values():
        taken(model, way, questions[0])
    found: dict[str, list[Taken]] = {name: [] for name in by}
    names = list(by)
    for number, question in enumerate(questions):
        tries: dict[str, list[Taken]] = {name: [] for name in by}
        for round_ in range(ROUNDS):
            first = (number + round_) % len(names)
            for name in names[first:] + names[:first]:
                tries[name].append(taken(model, by[name], question))
        for name, rounds in tries.items():
            found[name].append(
                Taken(
                    statistics.median(one.decide for one in rounds),
                    statistics.median(one.answer for one in rounds),
                    rounds[0].passes,
                    rounds[0].read,
                    rounds[0].written,
                )
            )
    return found


def figures(rows: Sequence[Taken], plain: Sequence[Taken]) -> Figures:
    """Return the medians of a way, beside just answering the same questions."""
    whole = [one.decide + one.answer for one in rows]
    alone = [one.decide + one.answer for one in plain]
    pairs = list(zip(whole, alone, strict=True))
    return Figures(
        statistics.median(one.decide for one in rows),
        statistics.median(one - other for one, other in pairs),
        statistics.median(one / other for one, other in pairs),
        max(one.passes[0] for one in rows),
        max(a.passes[1] - b.passes[1] for a, b in zip(rows, plain, strict=True)),
        statistics.median(one.read for one in rows),
        statistics.median(one.written for one in rows),
    )


def faults(found: Mapping[str, Figures]) -> list[str]:
    """Return the limits that are not kept."""
    told = [
        f"{name} decides in {found[name].decide_passes:g} passes"
        for name in (CBDR, DH_ICL)
        if found[name].decide_passes > 1
    ]
    told += [
        f"{name} writes {found[name].written:g} tokens to decide"
        for name in (CBDR, DH_ICL)
        if found[name].written > 0
    ]
    if found[CBDR].more_passes > 0:
        told.append(f"{CBDR} takes {found[CBDR].more_passes:g} passes more to answer")
    if found[CBDR].ratio > GOING_ON_LIMIT:
        told.append(f"{CBDR} takes {found[CBDR].ratio:.3f} of just answering")
    return told


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--questions", type=int, default=24)
    count = parser.parse_args().questions
    form = load_closed_book_form()
    rows = measured(form.model, ways(form), asked(count))
    found = {name: figures(own, rows[NEVER]) for name, own in rows.items()}
    print(
        f"{form.model.name}, {form.model.dtype}, {settings.TORCH_THREADS} threads; "
        f"{count} questions, {ROUNDS} rounds by turns"
    )
    _print(found)
    broken = faults(found)
    for fault in broken:
        print(f"Over the limit: {fault}.")
    return int(bool(broken))


def _probe(form: ClosedBookForm) -> BoundaryProbe:
    """Return a probe of the middle block; its time does not depend on what it learnt."""
    tap = middle_tap(form.model.blocks)
    (states,) = form.model.look_each([form.ending_ids()], form.prefix(), taps=[tap])
    random = np.random.default_rng(0)
    given = [
        Labelled(random.normal(size=(1, len(states[tap]))).astype("f4"), n % 2 > 0)
        for n in range(400)
    ]
    probe = fit(
        given[:200], given[200:],
        language_model=form.model.fingerprint, tap=tap, settings=SETTINGS,
    )  # fmt: skip
    return BoundaryProbe("0" * 64, probe)


def _print(found: Mapping[str, Figures]) -> None:
    table = Table(box=None)
    heads = (
        "", "decide", "passes", "tokens read", "tokens written", "answering: more",
        "passes more", "of just answering",
    )  # fmt: skip
    for name in heads:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, one in found.items():
        table.add_row(
            name,
            f"{one.decide:.1f} ms",
            f"{one.decide_passes:g}",
            f"{one.read:g}",
            f"{one.written:g}",
            f"{one.more:+.1f} ms",
            f"{one.more_passes:+g}",
            f"{one.ratio:.3f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    sys.exit(main())
