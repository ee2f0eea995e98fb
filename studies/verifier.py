"""How well the verifier does on knowledge and questions that nothing was fitted on."""

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import roc_auc_score

from kb.text.words import sentences
from probes.verifier.scoring import load_verifier
from qa.evaluation.metrics.intervals import clusters_of
from qa.evaluation.report.tables import TextTable, percent
from qa.exceptions import TrainingDataError
from qa.management.base import positive
from qa.pipeline.choice import choose
from qa.pipeline.policy import default
from qa.pipeline.weighing import log_odds
from qa.training.knowledge_sets import KnowledgeSet, SourceEntry, SourceQuestion, find
from qa.training.verifier_candidates import retrieve
from qa.training.verifier_desks import read_stack_faq
from qa.training.verifier_sources import read_squad
from studies.figures import share_of
from studies.study import OnProgress, Outcome, Study, file_argument

_COVERAGES: Final = (0.05, 0.1, 0.2)
_MIN_WORDS: Final = 6
BY_DOCUMENT: Final = ("doc2dial", "PolicyQA", "SQuADShifts, Amazon")
_ENTRIES_AN_INTENT: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """What would be shown for one question, and how likely it is to answer.

    Attributes:
        chance: The verifier's probability that what would be shown answers.
        is_right: Whether an entry that would be shown answers.
        first_is_right, similar_is_right: Whether the best entry answers, ranked by the
            verifier and by similarity alone.
    """

    group: str
    is_answerable: bool
    chance: float
    is_right: bool
    first_is_right: bool
    similar_is_right: bool


class Command(Study):
    """`python -m studies verifier --data DIR`."""

    help = (
        "Ask questions from six public data sets that the verifier never saw, or from "
        "those of them in the directory, half of them with the answering entries left "
        "out. Print how often the likeliest entry is right, and what is refused and "
        "wrongly shown at the default threshold. No language model is used."
    )

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(parser, "Directory that contains the data sets.")
        parser.add_argument(
            "--questions",
            type=positive,
            default=300,
            help="Number of questions from each set (default: 300).",
        )

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        data, count, seed = options["data"], options["questions"], options["seed"]
        threshold = float(default("min_entry_answer"))
        verifier = load_verifier()
        sets, absent = _read(data)
        lines = []
        for number, (name, known) in enumerate(sets.items()):
            on_progress(f"Asking {name}", number, len(sets))
            rows = list(ask(known, count, seed, apart=name in BY_DOCUMENT))
            lines.append(_line(name, rows, threshold))
        return Outcome(
            "The verifier on unseen sets",
            {
                "questions": f"{count} of each set, half without the answering entries",
                "threshold": f"{threshold:g} (default)",
                "verifier": verifier.fingerprint[:12],
                "seed": seed,
            },
            [TextTable("", _COLUMNS, tuple(lines))],
            notes=(
                "Shares with 95 % intervals that resample documents. An entry is right "
                "if the data set marks it; another one that also answers counts as "
                "wrong. An answer is the likeliest entry, or two that are nearly as "
                "likely, of which one has to be right. The threshold has to hold back "
                "entries similar to those left out. In these sets questions name no "
                "document, so each document is a knowledge base of its own: "
                f"{'; '.join(BY_DOCUMENT)}.",
                *(f"Not asked: {each}" for each in absent),
            ),
        )


_COLUMNS: Final = (
    "set", "questions", "right of answerable, by similarity", "by the verifier",
    "AUROC right", "false refusals", "false answers", "wrong among shown",
    "coverage at 5 / 10 / 20 % wrong",
)  # fmt: skip


def _read(data: Path) -> tuple[dict[str, KnowledgeSet], list[str]]:
    """Return the sets whose files exist, and for each other one what is missing.

    Raises:
        TrainingDataError: No set was found.
    """
    found: dict[str, KnowledgeSet] = {}
    absent: list[TrainingDataError] = []
    for name, read in SETS.items():
        try:
            found[name] = read(data)
        except TrainingDataError as error:
            absent.append(error)
    if not found:
        raise absent[0]
    return found, [f"{error}" for error in absent]


def ask(
    known: KnowledgeSet, count: int, seed: int, *, apart: bool = False
) -> Iterator[Row]:
    """Ask a sample, leaving out the answering entries of every second question.

    Args:
        apart: Whether each document is a knowledge base of its own.
    """
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    rows = chance.sample(known.questions, min(count, len(known.questions)))
    sample = [
        (row, bool(row.answered_by) and number % 2 == 0)
        for number, row in enumerate(rows)
    ]
    for part, asked in documents(known, sample) if apart else [(known, sample)]:
        yield from _ask(part, asked)


def documents(
    known: KnowledgeSet, sample: Sequence[tuple[SourceQuestion, bool]]
) -> Iterator[tuple[KnowledgeSet, list[tuple[SourceQuestion, bool]]]]:
    """Yield each document that is asked about, with its answerable questions."""
    places: dict[str, list[int]] = {}
    numbers: list[int] = []  # each entry's number within its title
    for at, entry in enumerate(known.entries):
        same = places.setdefault(entry.title, [])
        numbers.append(len(same))
        same.append(at)
    asked: dict[str, list[tuple[SourceQuestion, bool]]] = {}
    for row, is_left_out in sample:
        if row.answered_by:
            title = known.entries[min(row.answered_by)].title
            answering = frozenset(
                numbers[at]
                for at in row.answered_by
                if known.entries[at].title == title
            )
            here = replace(row, answered_by=answering)
            asked.setdefault(title, []).append((here, is_left_out))
    for title, questions in asked.items():
        entries = [known.entries[at] for at in places[title]]
        yield KnowledgeSet(known.name, known.licence, entries), questions


def _ask(
    known: KnowledgeSet, sample: Sequence[tuple[SourceQuestion, bool]]
) -> Iterator[Row]:
    verifier = load_verifier()
    found = retrieve(known, [row.text for row, _ in sample])
    for (row, is_left_out), places in zip(sample, found, strict=True):
        answering = {at for at in places if known.answers(row, at)}
        shown = [at for at in places if not (is_left_out and at in answering)][:8]
        if not shown:
            continue
        passages = [known.entries[at].passage for at in shown]
        odds = log_odds(row.text, passages, verifier)
        best = int(np.argmax(odds))
        texts = [passage.text for passage in passages]
        together, chance = choose(odds, texts, range(len(odds)))
        is_answerable = bool(row.answered_by) and not is_left_out
        yield Row(
            group=row.group,
            is_answerable=is_answerable,
            chance=chance,
            is_right=is_answerable and any(shown[at] in answering for at in together),
            first_is_right=is_answerable and shown[best] in answering,
            similar_is_right=is_answerable and shown[0] in answering,
        )


def _line(name: str, rows: Sequence[Row], threshold: float) -> tuple[str, ...]:
    shown = np.array([row.chance >= threshold for row in rows])
    right = np.array([row.is_right for row in rows])
    first = np.array([row.first_is_right for row in rows])
    due = np.array([row.is_answerable for row in rows])
    similar = np.array([row.similar_is_right for row in rows])
    groups = clusters_of([(str(at), row.group) for at, row in enumerate(rows)])

    scores = np.array([row.chance for row in rows])
    return (
        name,
        f"{len(rows):,}",
        share_of(similar, due, groups),
        share_of(first, due, groups),
        f"{roc_auc_score(right, scores):.3f}",
        share_of(~shown, due, groups),
        share_of(shown, ~due, groups),
        share_of(~right, shown, groups),
        " / ".join(percent(_coverage(scores, right, most)) for most in _COVERAGES),
    )


def _coverage(scores: np.ndarray, right: np.ndarray, most: float) -> float:
    """Return the largest share that can be shown with at most `most` of it wrong."""
    order = np.argsort(-scores, kind="stable")
    shown = np.arange(1, len(order) + 1)
    allowed = np.flatnonzero(np.cumsum(~right[order]) / shown <= most)
    return float(shown[allowed[-1]] / len(order)) if len(allowed) else 0.0


def read_doc2dial(data: Path) -> KnowledgeSet:
    """Read first turns; the sentences that overlap the marked span answer them."""
    found = KnowledgeSet("doc2dial", "as published")
    spans: dict[str, list[tuple[int, int, int]]] = {}
    for row in _lines(find(data, "documents.jsonl")):
        title, at = row["title"].partition("#")[0], 0
        for sentence in sentences(row["text"]):
            start = row["text"].find(sentence, at)
            at = start + len(sentence)
            place = found.place(SourceEntry(" ".join(sentence.split()), title))
            spans.setdefault(row["_id"], []).append((start, at, place))
    for row in _lines(find(data, "questions.jsonl")):
        text, start = row["last_user_turn"], row["answer_start"]
        end = start + len(row["answer"].rstrip())
        is_first = row["question"].count("user:") == 1
        if is_first and len(text.split()) >= _MIN_WORDS:
            places = [
                p for low, high, p in spans[row["doc_id"]] if low < end and start < high
            ]
            found.ask(text, places, group=row["doc_id"])
    return found


def read_clinc(data: Path) -> KnowledgeSet:
    """Read training utterances as entries and test utterances as questions."""
    found = KnowledgeSet("clinc150", "CC BY 3.0")
    rows = json.loads(find(data, "data_full.json").read_text("utf-8"))
    by_intent: dict[str, list[str]] = {}
    for text, intent in rows["train"]:
        by_intent.setdefault(intent, []).append(text)
    places = {
        intent: [
            found.place(
                SourceEntry(f"About {intent.replace('_', ' ')}.", question=text)
            )
            for text in texts[:_ENTRIES_AN_INTENT]
        ]
        for intent, texts in by_intent.items()
    }
    for text, intent in rows["test"]:
        found.ask(text, places[intent], group=intent)
    for text, _ in rows["oos_test"]:
        found.ask(text, [], group="out of scope")
    return found


def _squad(
    file: str, name: str, *, unseen: bool = False
) -> Callable[[Path], KnowledgeSet]:
    def read(data: Path) -> KnowledgeSet:
        path = find(data, file)
        articles: tuple[str, ...] = ()
        if unseen:
            seen = load_verifier().card.settings["articles"]
            titles = [
                row["title"] for row in json.loads(path.read_text("utf-8"))["data"]
            ]
            articles = tuple(title for title in titles if title not in seen)
        return read_squad(path, name=name, licence="as published", articles=articles)

    return read


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def read_faq(data: Path) -> KnowledgeSet:
    """Read the half whose questions only the calibration's weights were fitted on."""
    return read_stack_faq(find(data, "stackExchange-FAQ.json"))[1]


SETS: Final[dict[str, Callable[[Path], KnowledgeSet]]] = {
    "SQuAD 2.0, 13 articles": _squad(
        "squad-v2.0-24-articles.json", "squad2", unseen=True
    ),
    "doc2dial": read_doc2dial,
    "PolicyQA": _squad("policyqa_test.json", "policyqa"),
    "CLINC150": read_clinc,
    "SQuADShifts, Amazon": _squad("squadshifts_amazon_reviews.json", "amazon"),
    "StackFAQ, held-out half": read_faq,
}
