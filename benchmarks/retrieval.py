"""Measure how well search finds the entry that answers, on public data sets.

    python -m benchmarks.retrieval DATA --keep DIRECTORY [--only doc2dial] [--limit 500]

DATA is a directory of data sets: `doc2dial/` (documents.jsonl, questions.jsonl),
`squad/` (SQuAD 2.0) and `scifact/` (BEIR's layout); a missing set is skipped. DIRECTORY
keeps a separate database and every figure measured, so that an interrupted run can
continue; the figures of each search method are kept apart.

doc2dial: the entries are all sentences of the documents, with the document's title and
the heading above them; the questions are the first turns of the dialogues; a sentence
is right if it overlaps the passage that the answer came from. SQuAD: the entries are
all sentences of the articles that the bundled adapter was not fitted on; the questions
are the answerable ones; a sentence is right if it is in the question's paragraph and
contains a reference answer. scifact: like the suite of that name. Except for scifact,
each recall is measured twice: as search orders, and "weighed", as the verifier then
orders what is found. Intervals are bootstrapped at 95 %, over questions, or for SQuAD
over articles.
"""

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import Progress

from accounts.acting import as_owner

if TYPE_CHECKING:
    from qa.evaluation.knowledge import Source

_PLACES = (1, 4, 10)
_HEADING_WORDS = 16
_SENTENCE_ENDS = re.compile(r"[.:;,!][\"')]?\s*(\[\d+ ?\])?$")
_TURN = "\tagent:"  # occurs in every question but the first of a dialogue


@dataclass(frozen=True, slots=True)
class Asked:
    id: str
    text: str
    group: str
    right: frozenset[str]  # texts of entries


Measured = Mapping[str, float]


def main() -> int:
    options = _options()
    os.environ |= {
        "NESCIO_VAR_DIR": str(options.keep.resolve()),
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
        "NESCIO_LOG_LEVEL": "WARNING",
    }
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from nescio.embedded import postgres
    from qa.exceptions import EvaluationDataError

    postgres.start(settings.PLACES)
    try:
        call_command("migrate", verbosity=0)
        for name in options.only or SETS:
            try:
                _report(name, SETS[name](options))
            except EvaluationDataError as error:
                print(f"{name}: skipped. {error}")
    finally:
        postgres.stop(settings.PLACES)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--keep", type=Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--only", nargs="+", choices=tuple(SETS))
    parser.add_argument("--limit", type=int, help="questions of each set, drawn once")
    return parser.parse_args()


def _doc2dial(options: argparse.Namespace) -> list[Measured]:
    from qa.evaluation.cases import as_text, read_lines
    from qa.evaluation.knowledge import Fact, Source
    from qa.evaluation.suites.options import find_file

    documents = find_file("doc2dial", options.data, "doc2dial/documents.jsonl")
    questions = find_file("doc2dial", documents.parent, "questions.jsonl")
    sources: list[Source] = []
    places: dict[str, list[tuple[int, int, str]]] = {}
    known: set[str] = set()
    for _, row in read_lines(documents, dict):
        key, text = as_text(row["_id"]), as_text(row["text"])
        found = [
            (begin, end, Fact(sentence, heading=heading))
            for begin, end, heading, sentence in _sentences(text)
        ]
        places[key] = [(begin, end, fact.text) for begin, end, fact in found]
        # A sentence that occurs in several documents becomes one entry.
        facts = {fact.text: fact for _, _, fact in found if fact.text not in known}
        known |= facts.keys()
        # The pieces of a split document have a number after their title.
        title = re.sub(r"#\d+_\d+$", "", as_text(row["title"]))
        sources.append(Source(key=key, title=title[:300], facts=list(facts.values())))
    asked: list[Asked] = []
    for _, row in read_lines(questions, dict):
        start, answer = int(str(row["answer_start"])), as_text(row["answer"]).strip()
        right = frozenset(
            text
            for begin, end, text in places[as_text(row["doc_id"])]
            if begin < start + len(answer) and end > start
        )
        if right and _TURN not in as_text(row["question"]):
            turn = as_text(row["last_user_turn"])
            asked.append(Asked(as_text(row["id"]), turn, as_text(row["id"]), right))
    return _ask_of(sources, asked, "doc2dial", options)


def _sentences(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield start, end, heading and text of each sentence.

    A heading is a short line that does not end like a sentence and is not the last one.
    """
    from kb.text.words import sentence_spans

    lines = [line for line in re.finditer(r"[^\n]+", text) if line[0].strip()]
    heading = ""
    for number, line in enumerate(lines):
        said = line[0].strip()
        is_short = len(said.split()) <= _HEADING_WORDS
        is_last = number + 1 == len(lines)
        if is_short and not is_last and not _SENTENCE_ENDS.search(said):
            heading = said
            continue
        for span in sentence_spans(line[0]):
            sentence = span.within(line[0]).strip()
            if sum(character.isalpha() for character in sentence) > 2:
                begin = line.start()
                yield begin + span.start, begin + span.end, heading, sentence


def _squad(options: argparse.Namespace) -> list[Measured]:
    from probes.language_model.loading import SHIPPED
    from qa.evaluation.knowledge import Fact, Source
    from qa.evaluation.suites.options import find_file
    from qa.evaluation.suites.question_sets import (
        FILES,
        article_cases,
        read_articles,
        sentences_of,
    )

    card = json.loads((SHIPPED / "adapter.json").read_text())
    file = find_file("squad", options.data, *FILES)
    sources: list[Source] = []
    asked: list[Asked] = []
    for title, paragraphs in read_articles(file).items():
        if title in card["groups"]:
            continue
        facts: dict[str, Fact] = {}
        for row in paragraphs:
            own = [Fact(text) for text in sentences_of(row["context"])]
            facts |= {fact.text: fact for fact in own}
            for case in article_cases(title, [row]):
                right = frozenset(
                    fact.text
                    for fact in own
                    if any(r.lower() in fact.text.lower() for r in case.references)
                )
                if right:
                    asked.append(Asked(case.id, case.question, title, right))
        heading = title.replace("_", " ")
        sources.append(Source(key=title, title=heading, facts=list(facts.values())))
    return _ask_of(sources, asked, "squad", options)


def _scifact(options: argparse.Namespace) -> list[Measured]:
    from qa.evaluation.suites.scifact import open_scifact

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("scifact: writing")
        suite = open_scifact(
            data=options.data,
            limit=options.limit,
            loading=lambda done, of: progress.update(task, completed=done, total=of),
        )

    def measure(id_: str) -> Measured:
        found = suite.judge(id_).measures
        return {"nDCG@10": found["ndcg_at_10"], "recall@10": found["recall_at_10"]}

    ids = list(suite.case_ids)
    groups = {id_: id_ for id_ in ids}
    return _measure_all("scifact", ids, groups, measure, options)


SETS: Mapping[str, Callable[[argparse.Namespace], list[Measured]]] = {
    "doc2dial": _doc2dial,
    "squad": _squad,
    "scifact": _scifact,
}


def _ask_of(
    sources: Sequence["Source"],
    asked: list[Asked],
    name: str,
    options: argparse.Namespace,
) -> list[Measured]:
    """Write the facts of `sources` unless already stored, and ask the questions."""
    from kb.search import embed_question, search
    from qa.answers.sources import configured_verifier, evidence_scope
    from qa.evaluation.knowledge import ensure_knowledge, evaluation_user
    from qa.pipeline.entry_gate import weigh
    from qa.pipeline.values import clean_question
    from qa.policies.services import active_policy

    digest = hashlib.sha256(repr(sources).encode()).hexdigest()[:8]
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{name}: writing")
        base = ensure_knowledge(
            f"retrieval-{name}-{digest}",
            f"Retrieval: {name}",
            sources,
            loading=lambda done, of: progress.update(task, completed=done, total=of),
        )
    policy = active_policy(base).as_value()
    scope, verifier = (
        evidence_scope(evaluation_user(), base, policy),
        configured_verifier(),
    )
    by_id = {each.id: each for each in asked}

    def measure(id_: str) -> Measured:
        text, right = by_id[id_].text, by_id[id_].right
        hits = search(
            embed_question(text), text, scope=scope, top_k=policy.retrieved
        ).hits
        weighed = weigh(clean_question(text, base.language), hits, verifier, policy)
        ordered = [piece for _, piece in weighed.pieces]
        ordered += [hit for hit in hits if hit not in ordered]
        return {
            f"{how}recall@{k}": float(any(hit.text in right for hit in found[:k]))
            for how, found in (("", hits), ("weighed ", ordered))
            for k in _PLACES
        }

    groups = {each.id: each.group for each in asked}
    return _measure_all(name, list(by_id), groups, measure, options)


def _measure_all(
    name: str,
    ids: list[str],
    groups: Mapping[str, str],
    measure: Callable[[str], Measured],
    options: argparse.Namespace,
) -> list[Measured]:
    """Measure the questions without figures; each row includes its group's number."""
    from kb.embedding.services import active_model
    from kb.search import METHOD
    from qa.answers.sources import configured_verifier
    from qa.exceptions import EvaluationDataError
    from qa.pipeline.weighing import READING

    if options.limit and options.limit < len(ids):
        drawn = np.random.default_rng(7).permutation(len(ids))[: options.limit]
        ids = [ids[at] for at in sorted(drawn)]
    ways = (
        METHOD,
        active_model().fingerprint,
        READING,
        configured_verifier().fingerprint,
    )
    way = hashlib.sha256(" ".join(ways).encode()).hexdigest()
    file = options.keep / f"{name}-{way[:8]}.jsonl"
    done: dict[str, Measured] = {}
    if file.exists():
        # A killed run may have left a truncated row; it is measured again.
        whole = [line for line in file.read_text().splitlines() if line.endswith("}}")]
        done = {row["id"]: row["measures"] for row in map(json.loads, whole)}
    with Progress(console=Console(stderr=True)) as progress, file.open("a") as stream:
        task = progress.add_task(f"{name}: asking", total=len(ids))
        for id_ in ids:
            if id_ not in done:
                done[id_] = measure(id_)
                row = {"id": id_, "measures": done[id_]}
                stream.write(json.dumps(row) + "\n")
                stream.flush()
            progress.advance(task)
    if not ids:
        raise EvaluationDataError("There is no question to ask.")
    numbers = {group: at for at, group in enumerate(sorted(set(groups.values())))}
    return [{**done[id_], "group": numbers[groups[id_]]} for id_ in ids]


def _report(name: str, rows: Sequence[Measured]) -> None:
    from kb.search import METHOD

    print(f"{name}: {len(rows)} questions, {METHOD}")
    groups = np.array([row["group"] for row in rows], dtype=int)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    for measure in [key for key in rows[0] if key != "group"]:
        values = np.array([row[measure] for row in rows])
        low, high = _interval(values, members)
        print(f"  {measure:<18}{values.mean():.3f} ({low:.3f} to {high:.3f})")


def _interval(
    values: np.ndarray, members: Sequence[np.ndarray], draws: int = 2_000
) -> tuple[float, float]:
    """Return the 95 % bootstrap percentile interval of the mean, resampling groups."""
    rng = np.random.default_rng(0)
    sums = np.array([values[at].sum() for at in members])
    sizes = np.array([len(at) for at in members])
    picks = rng.integers(0, len(members), size=(draws, len(members)))
    low, high = np.percentile(sums[picks].sum(1) / sizes[picks].sum(1), (2.5, 97.5))
    return float(low), float(high)


if __name__ == "__main__":
    with as_owner("benchmarks"):
        sys.exit(main())
