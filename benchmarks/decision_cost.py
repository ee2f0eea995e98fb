"""Measure the cost of deciding whether to retrieve, on top of writing the answer.

    python -m benchmarks.decision_cost [--questions N]

Runs on the configured white-box language model with the own-knowledge prompt. Each
question is tried with every way of deciding, in rotating order, so that other load on
the machine affects all of them; times are medians over the questions of the median of
their rounds. Prompt passes and tokens are counted in the model and checked: CBDR and
DH-ICL must decide within one prompt pass without writing a token, and CBDR must
continue from that pass, so that an answer takes no more passes than without deciding,
and at most 1.05 times as long. The exit status is 1 if a limit is exceeded.
"""

# ruff: noqa: E402  # imports that need Django come after its setup
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
    """The cost of deciding on one question and then answering it.

    Attributes:
        decide: Milliseconds to decide.
        answer: Further milliseconds to answer.
        passes: Prompt passes of deciding, and of both together.
        read: Tokens read in prompt passes while deciding.
        written: Tokens written while deciding.
    """

    decide: float
    answer: float
    passes: tuple[int, int]
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one way of deciding; most are medians.

    `more`, `ratio` and `more_passes` compare it with just answering.
    """

    decide: float
    more: float
    ratio: float
    decide_passes: float
    more_passes: float
    read: float
    written: float


class GivenHistory:
    """A fixed history of past questions; the cost of searching it is not measured."""

    def known(
        self, question: Question, *, own_model: str, limit: int
    ) -> Sequence[KnownQuestion]:
        """Return questions other than the one asked, alternately known and unknown."""
        every = asked(len(SUBJECTS) * len(FORMS))
        others = [text for text in every if text != question.text]
        return [KnownQuestion(t, n % 2 == 0) for n, t in enumerate(others)][:limit]

    def judged(
        self, question: Question, *, language_model: str, limit: int
    ) -> Sequence[JudgedQuestion]:
        return ()


def asked(count: int) -> list[str]:
    """Return `count` questions, of which the first 48 are distinct."""
    size = len(SUBJECTS)
    return [
        FORMS[number // size % len(FORMS)].format(SUBJECTS[number % size])
        for number in range(count)
    ]


def ways(form: ClosedBookForm) -> dict[str, SelfKnowledge]:
    """Return every way of deciding, starting with not deciding at all."""
    return {
        NEVER: Undecided(form),
        "log-probability": SelfKnowledgeByDraft(form),
        CBDR: SelfKnowledgeByProbe(form, _probe(form)),
        DH_ICL: SelfKnowledgeByHistory(form, history_form(), GivenHistory()),
    }


def taken(model: WhiteBoxModel, way: SelfKnowledge, question: str) -> Taken:
    """Decide and answer once, and return the cost."""
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
    """Try every way in turn; return for each the median of each question's rounds."""
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
    """Return the figures of a way, compared with just answering the same questions."""
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
    """Return a message for each limit that is exceeded."""
    findings = [
        f"{name} decides in {found[name].decide_passes:g} passes"
        for name in (CBDR, DH_ICL)
        if found[name].decide_passes > 1
    ]
    findings += [
        f"{name} writes {found[name].written:g} tokens to decide"
        for name in (CBDR, DH_ICL)
        if found[name].written > 0
    ]
    if found[CBDR].more_passes > 0:
        findings.append(
            f"{CBDR} takes {found[CBDR].more_passes:g} more passes than answering alone"
        )
    if found[CBDR].ratio > GOING_ON_LIMIT:
        findings.append(
            f"{CBDR} takes {found[CBDR].ratio:.3f} times as long as answering alone"
        )
    return findings


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
    """Fit a probe of the middle block on noise: weights do not affect its run time."""
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
