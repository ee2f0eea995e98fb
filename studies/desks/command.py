"""`python -m studies desks`: whole knowledge bases of help desks, asked as by a stranger."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.contrib.auth.models import User
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from accounts.acting import acting_for
from kb.documents.models import KnowledgeBase
from kb.embedding.services import embed_question
from kb.search import search
from kb.types import Evidence
from qa.answers.sources import configured_verifier, evidence_scope
from qa.calibration.models import SelfCalibrationSettings
from qa.calibration.self_calibration import calibrate_itself
from qa.evaluation.knowledge import evaluation_user
from qa.evaluation.report.tables import TextTable, percent
from qa.pipeline.entry_gate import answering, weigh
from qa.pipeline.policy import Policy
from qa.pipeline.values import clean_question
from qa.policies.services import active_policy, ensure_default_policy
from studies.figures import share_of
from studies.study import OnProgress, Outcome, Study

from .reading import Desk, DeskQuestion, Kind, ensure_desk, read_desks

_THRESHOLDS: Final = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
_WRONG: Final = (0.03, 0.05, 0.07)
_TARGET: Final = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """What would be shown for a question, and its probability in [0, 1] of answering.

    Attributes:
        calibrated: The threshold that the desk's knowledge base chose by itself, or the
            default where it was not calibrated.
    """

    desk: str
    kind: Kind
    chance: float
    is_right: bool
    calibrated: float


class Command(Study):
    """`python -m studies desks [--desks DIR]`."""

    help = (
        "Import the files of help desks (Word, Excel, PDF, web pages, tables), verify "
        "them as they are, ask the desks' questions, and print what the verifier would "
        "show at several thresholds. An answer is right if it shows the words that the "
        "question's writer named. Needs a database; no language model is asked."
    )

    def declare(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--desks",
            type=Path,
            metavar="DIR",
            default=Path(__file__).parent,
            help="Directory with a subdirectory for each desk: its files, and "
            "questions.json (default: the desks beside this study).",
        )
        parser.add_argument(
            "--calibrate",
            action="store_true",
            help="Also let each knowledge base calibrate itself for at most 1 wrong "
            "answer in 20 shown, and add what it then answers (minutes for each).",
        )

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        desks = read_desks(options["desks"])
        calibrates = options["calibrate"]
        rows = [
            row
            for desk in desks
            for row in _asked(desk, on_progress, calibrates=calibrates)
        ]
        names = [desk.name for desk in desks]
        return Outcome(
            "Help desks that nothing was fitted on",
            {"desks": ", ".join(names), "questions": f"{len(rows):,}"},
            [_by_threshold(rows, calibrates=calibrates), _by_share(rows, names)],
            notes=(
                "Shares with 95 % intervals that resample desks. A second entry that "
                "is nearly as likely is shown with the first; the answer is right if "
                "both together show the named words.",
            ),
        )


def _asked(desk: Desk, on_progress: OnProgress, *, calibrates: bool) -> Iterator[Row]:
    on_progress(f"{desk.name}: importing", 0, len(desk.questions))
    knowledge_base = ensure_desk(desk)
    policy = ensure_default_policy(knowledge_base).as_value()
    threshold = policy.min_entry_answer
    if calibrates:
        calibrate_itself(
            knowledge_base,
            target=_TARGET,
            mode=SelfCalibrationSettings.Mode.ACTIVATE,
            on_progress=partial(on_progress, f"{desk.name}: calibrating"),
        )
        threshold = active_policy(knowledge_base).min_entry_answer
    asker = evaluation_user()
    with acting_for(asker):
        ask = partial(would_show, asker, knowledge_base, policy)
        for done, question in enumerate(desk.questions, start=1):
            on_progress(f"{desk.name}: asking", done, len(desk.questions))
            chance, shown = ask(question)
            texts = [f"{piece.question}\n{piece.text}" for piece in shown]
            is_right = question.is_answered_by(texts)
            yield Row(desk.name, question.kind, chance, is_right, threshold)


def would_show(
    asker: User, knowledge_base: KnowledgeBase, policy: Policy, question: DeskQuestion
) -> tuple[float, Sequence[Evidence]]:
    """Return the entries that would be shown, and the probability that they answer."""
    scope = evidence_scope(asker, knowledge_base, policy)
    vector = embed_question(question.text)
    found = search(vector, question.text, scope=scope, top_k=policy.retrieved).hits
    asked = clean_question(question.text, knowledge_base.language)
    weighed = weigh(asked, found, configured_verifier(), policy)
    return answering(asked, weighed, policy)


def _by_threshold(rows: Sequence[Row], *, calibrates: bool) -> TextTable:
    desks = np.unique([row.desk for row in rows], return_inverse=True)[1]
    chance = np.array([row.chance for row in rows])
    right = np.array([row.is_right for row in rows])
    known, near = (
        np.array([row.kind is kind for row in rows]) for kind in (Kind.KNOWN, Kind.NEAR)
    )

    def line(name: str, shown: NDArray[np.bool_]) -> tuple[str, ...]:
        shares = (~shown, known), (shown, ~known), (shown, near), (~right, shown)
        return name, *(share_of(counted, among, desks) for counted, among in shares)

    lines = [line(f"{least:.2f}", chance >= least) for least in _THRESHOLDS]
    if calibrates:
        chosen = np.array([row.calibrated for row in rows])
        lines.append(line("calibrated itself", chance >= chosen))
    columns = (
        "threshold", "answerable refused", "unanswerable answered",
        "near misses answered", "wrong among shown",
    )  # fmt: skip
    return TextTable("By threshold", columns, tuple(lines))


def _by_share(rows: Sequence[Row], desks: Sequence[str]) -> TextTable:
    lines = [_shares("all", rows)]
    if len(desks) > 1:
        lines += [_shares(d, [row for row in rows if row.desk == d]) for d in desks]
    columns = (
        "desk", "questions", "right entry likeliest", "AUROC",
        *(f"refused at {100 * wrong:.0f} % wrong" for wrong in _WRONG),
    )  # fmt: skip
    return TextTable(
        "Where so many of the shown answers are wrong", columns, tuple(lines)
    )


def _shares(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    chance = np.array([row.chance for row in rows])
    right = np.array([row.is_right for row in rows])
    known = np.array([row.kind is Kind.KNOWN for row in rows])
    refused = (percent(refused_at(chance, right, known, wrong)) for wrong in _WRONG)
    return (
        name, f"{len(rows):,}", percent(float(right[known].mean())),
        f"{roc_auc_score(right, chance):.3f}", *refused,
    )  # fmt: skip


def refused_at(
    chance: np.ndarray, right: np.ndarray, known: np.ndarray, wrong: float
) -> float:
    """Return the least share of the known questions refused at a share of wrong answers.

    Args:
        chance: The probability on which a threshold is set, of each question.
        right: Whether what would be shown is right.
        known: Whether the question has an answer.
        wrong: The largest share of wrong answers among those shown.
    """
    order = np.argsort(-chance, kind="stable")
    count = np.arange(1, len(order) + 1)
    # Questions with the same probability are shown together.
    is_last = np.append(np.diff(chance[order]) != 0, True)
    allowed = is_last & (np.cumsum(~right[order]) <= wrong * count)
    shown = np.cumsum(known[order])[allowed]
    return float(1 - shown.max(initial=0) / known.sum())
