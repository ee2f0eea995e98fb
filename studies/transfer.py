"""Answers from knowledge that nothing was tuned on, before and after self-calibration.

Everything runs as in the product: entries are stored and searched in the database,
questions are asked like any others, and the policy that self-calibration proposes is
activated. Nothing else is configured.
"""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from accounts.acting import acting_for
from accounts.ids import digest
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.asking import ask
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer
from qa.calibration.models import SelfCalibrationSettings
from qa.calibration.self_calibration import calibrate_itself
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge, evaluation_user
from qa.evaluation.metrics.intervals import clusters_of
from qa.evaluation.report.tables import TextTable
from qa.exceptions import CalibrationError, InvalidQuestionError
from qa.management.base import positive
from qa.policies.models import Policy
from qa.policies.services import activate, ensure_default_policy
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry, SourceQuestion
from studies.figures import share_of
from studies.study import OnProgress, Outcome, Study, file_argument
from studies.verifier import BY_DOCUMENT, SETS, documents

# If a set's questions do not name their document, this many documents, those with the
# most questions, become knowledge bases of their own.
_DOCUMENTS: Final = 5
_TARGET: Final = 0.05


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the known entries that answer it; none if they were left out."""

    text: str
    right: frozenset[SourceEntry]
    group: str


@dataclass(frozen=True, slots=True)
class Part:
    """A knowledge base to create, and the questions to ask it."""

    entries: Sequence[SourceEntry]
    asked: Sequence[Asked]


@dataclass(frozen=True, slots=True)
class Row:
    group: str
    is_answerable: bool
    is_shown: bool
    is_right: bool


class Command(Study):
    """`python -m studies transfer --data DIR`."""

    help = (
        "Ask knowledge bases made from public data sets that nothing was fitted on, "
        "with half of the answers left out: once with the default policy, and once "
        "after self-calibration for at most 1 wrong answer in 20 shown. Needs a "
        "database and writes knowledge bases to it that only evaluations see."
    )

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(parser, "Directory that contains the data sets.")
        parser.add_argument(
            "--questions",
            type=positive,
            default=300,
            help="Number of questions from each set (default: 300).",
        )
        parser.add_argument(
            "--sets",
            nargs="+",
            choices=[*SETS],
            default=[*SETS],
            help="Sets to measure (default: all).",
        )

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        lines: list[tuple[str, ...]] = []
        for name in options["sets"]:
            known = SETS[name](options["data"])
            parts = _parts(known, options["questions"], options["seed"], name)
            found = _measured(name, parts, options["seed"], on_progress)
            for when, rows in found.items():
                lines.append((name, when, *_line(rows)))
        return Outcome(
            "Knowledge bases that nothing was tuned on",
            {
                "questions": f"{options['questions']} of each set",
                "target": "at most 1 in 20 shown answers wrong",
                "seed": options["seed"],
            },
            [TextTable("", _COLUMNS, tuple(lines))],
            notes=(
                "Shares with 95 % intervals that resample documents. An answer is "
                "right if it cites an entry that the data set marks; one that cites "
                "another entry which also answers counts as wrong. Entries that answer "
                "a question whose answer is left out are never written. In sets whose "
                f"questions name no document ({'; '.join(BY_DOCUMENT)}), the "
                f"{_DOCUMENTS} documents with the most questions are knowledge bases "
                "of their own.",
            ),
        )


_COLUMNS: Final = (
    "set", "policy", "questions", "answerable", "false refusals", "false answers",
    "wrong among shown", "shown",
)  # fmt: skip


def _parts(known: KnowledgeSet, count: int, seed: int, name: str) -> list[Part]:
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    found: list[tuple[KnowledgeSet, Sequence[SourceQuestion]]] = [
        (known, known.questions)
    ]
    if name in BY_DOCUMENT:
        every = documents(known, [(row, False) for row in known.questions])
        found = [(part, [row for row, _ in asked]) for part, asked in every]
        found.sort(key=lambda pair: (-len(pair[1]), pair[0].entries[0].title))
    found = found[:_DOCUMENTS]
    each = count // len(found)
    return [
        _part(part, chance.sample(rows, min(each, len(rows)))) for part, rows in found
    ]


def _part(known: KnowledgeSet, rows: Sequence[SourceQuestion]) -> Part:
    """Leave out every second answer; several questions may share one."""
    places = range(len(known.entries))
    answers = dict.fromkeys(row.answered_by for row in rows if row.answered_by)
    gone = {*list(answers)[::2]}
    left_out = {
        at
        for row in rows
        if row.answered_by in gone
        for at in places
        if known.answers(row, at)
    }
    kept = [at for at in places if at not in left_out]
    return Part(
        [known.entries[at] for at in kept],
        [
            Asked(
                row.text,
                frozenset(known.entries[at] for at in kept if known.answers(row, at))
                if row.answered_by
                else frozenset(),
                row.group,
            )
            for row in rows
        ],
    )


def _measured(
    name: str, parts: Sequence[Part], seed: int, on_progress: OnProgress
) -> Mapping[str, list[Row]]:
    default: list[Row] = []
    calibrated: list[Row] = []
    for number, part in enumerate(parts, start=1):
        step = f"{name}, {number} of {len(parts)}"
        knowledge_base = _written(name, part, on_progress)
        _activate_default(knowledge_base)
        default += _asked(part, knowledge_base, f"{step}: default", on_progress)
        with suppress(CalibrationError):  # too few questions: the default stays
            calibrate_itself(
                knowledge_base,
                target=_TARGET,
                seed=seed,
                mode=SelfCalibrationSettings.Mode.ACTIVATE,
                on_progress=partial(on_progress, f"{step}: calibrating"),
            )
        calibrated += _asked(part, knowledge_base, f"{step}: calibrated", on_progress)
    return {"default": default, "calibrated itself": calibrated}


def _written(name: str, part: Part, on_progress: OnProgress) -> KnowledgeBase:
    by_title: dict[str, list[Fact]] = {}
    for entry in part.entries:
        fact = Fact(entry.text, entry.question, heading=entry.section)
        by_title.setdefault(entry.title, []).append(fact)
    key = digest(name, *(str(entry) for entry in part.entries))[:10]
    return ensure_knowledge(
        f"eval-transfer-{key}",
        f"Evaluation: {name}",
        [Source(f"{key} {at}", title or name, facts)
         for at, (title, facts) in enumerate(by_title.items())],
        loading=partial(on_progress, f"Writing {name}"),
    )  # fmt: skip


def _activate_default(knowledge_base: KnowledgeBase) -> None:
    """Activate the first policy version, which an earlier run may have replaced."""
    active = ensure_default_policy(knowledge_base)
    first = Policy.objects.filter(knowledge_base=knowledge_base).earliest("pk")
    if active != first:
        activate(first, by=None)


def _asked(
    part: Part, knowledge_base: KnowledgeBase, step: str, on_progress: OnProgress
) -> Iterator[Row]:
    asker = evaluation_user()
    for done, question in enumerate(part.asked, start=1):
        on_progress(step, done, len(part.asked))
        try:
            with acting_for(asker):
                answer = ask(
                    question.text,
                    asker=asker,
                    knowledge_base=knowledge_base,
                    channel=Answer.Channel.EVALUATION,
                )
        except InvalidQuestionError:
            continue  # the product rejects it before any gate decides
        is_shown = answer.outcome == Answer.Outcome.ANSWERED
        texts = {(entry.question, entry.text) for entry in question.right}
        cited = Entry.objects.filter(
            uses__answer=answer, uses__role=AnswerEvidence.Role.CITED
        ).values_list("question", "text")
        yield Row(
            question.group,
            bool(question.right),
            is_shown,
            is_shown and any(row in texts for row in cited),
        )


def _line(rows: Sequence[Row]) -> tuple[str, ...]:
    shown = np.array([row.is_shown for row in rows])
    right = np.array([row.is_right for row in rows])
    due = np.array([row.is_answerable for row in rows])
    groups = clusters_of([(str(at), row.group) for at, row in enumerate(rows)])

    return (
        f"{len(rows):,}",
        f"{due.sum():,}",
        share_of(~shown, due, groups),
        share_of(shown, ~due, groups),
        share_of(~right, shown, groups),
        f"{shown.sum():,}",
    )
