"""The knowledge to retrieve from: public texts, and entries for some questions."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kb.documents.models import KnowledgeBase
from qa.evaluation.cases import read_lines
from qa.evaluation.knowledge import Fact, Loading, Source, ensure_knowledge
from qa.evaluation.suites.options import find_file, misread
from qa.evaluation.suites.question_sets import FILES, read_articles
from qa.inference.evidence_text import flatten, sentence_spans

from .questions import TimedQuestion

# Passages of about a hundred words, usual in open-domain retrieval since Karpukhin et
# al. (EMNLP 2020), but cut at sentence ends.
_WORDS: Final = 100
_MIN_WORDS: Final = 5
_STATEMENTS: Final = 250  # of each subject
_PASSAGES: Final = 6  # of each page

PROTOCOL: Final = (
    "The knowledge base holds {texts} passages of public texts (SQuAD's paragraphs, true "
    "statements, doc2dial's pages), which rarely answer, and a verified "
    "question-and-answer entry for {entries} of the {answerable} answerable questions, "
    "drawn by seed: retrieval can help these and not the others. An entry's question "
    "equals the question asked, so retrieval nearly always finds it: the comparison "
    "measures the decision, not the search."
)


def ensure_comparison_knowledge(
    data: Path, questions: Sequence[TimedQuestion], *, loading: Loading | None = None
) -> KnowledgeBase:
    """Return the knowledge base of the public texts and these questions' entries."""
    return ensure_sources(
        "timing", "when to retrieve", sources_of(data, questions), loading=loading
    )


def ensure_sources(
    name: str, title: str, sources: Sequence[Source], *, loading: Loading | None = None
) -> KnowledgeBase:
    """Return the knowledge base of just these sources; its slug holds their digest."""
    content = [
        [source.key, *([fact.question, fact.text] for fact in source.facts)]
        for source in sources
    ]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
    return ensure_knowledge(
        f"eval-{name}-{digest}", f"Evaluation: {title}", sources, loading=loading
    )


def protocol_of(sources: Sequence[Source], questions: Sequence[TimedQuestion]) -> str:
    """Describe what the knowledge base holds and which questions retrieval can help."""
    entries = [fact for source in sources for fact in source.facts if fact.question]
    return PROTOCOL.format(
        texts=f"{sum(len(s.facts) for s in sources) - len(entries):,}",
        entries=f"{len(entries):,}",
        answerable=f"{sum(bool(one.case.is_answerable) for one in questions):,}",
    )


def sources_of(data: Path, questions: Sequence[TimedQuestion]) -> list[Source]:
    """Return the public texts, then the entries of each set."""
    sources = [*_squad(data), *_statements(data), *_pages(data)]
    return [*sources, *_entries(questions)]


def _squad(data: Path) -> Iterator[Source]:
    file = find_file("squad2", data, *FILES)
    try:
        for title, paragraphs in read_articles(file).items():
            texts = [text for row in paragraphs for text in _passages(row["context"])]
            yield _source(f"squad:{title}", title.replace("_", " "), texts)
    except (KeyError, TypeError) as error:
        raise misread(file, "SQuAD 2.0") from error


def _statements(data: Path) -> Iterator[Source]:
    first = find_file("true_false", data, "true_false/*_true_false.csv")
    for file in sorted(first.parent.glob("*_true_false.csv")):
        said = true_statements(file)
        if not said:
            raise misread(file, "statements with labels")
        # Ordered by a hash, as the files are in the order of their subjects.
        texts = sorted(said, key=_place)
        title = file.stem.removesuffix("_true_false")
        yield _source(f"true_false:{title}", title, texts[:_STATEMENTS])


def true_statements(file: Path) -> set[str]:
    """Return the statements that a file of the True-False set labels as true."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not rows or not {"statement", "label"} <= rows[0].keys():
        raise misread(file, "statements with labels")
    return {row["statement"].strip() for row in rows if row["label"] == "1"}


def _pages(data: Path) -> Iterator[Source]:
    file = find_file("doc2dial", data, "doc2dial/documents.jsonl")

    def read(row: Mapping[str, Any]) -> Source:
        texts = list(_passages(row["text"]))[:_PASSAGES]
        return _source(f"doc2dial:{row['_id']}", str(row["title"]), texts)

    yield from (source for _, source in read_lines(file, read))


def _entries(questions: Sequence[TimedQuestion]) -> Iterator[Source]:
    by_set: dict[str, list[Fact]] = {}
    for one in questions:
        if one.has_entry:
            fact = Fact(
                one.case.references[0], question=one.case.question, key=one.case.id
            )
            by_set.setdefault(one.data_set, []).append(fact)
    for name, facts in by_set.items():
        yield Source(f"answers:{name}", f"Answers to questions of {name}", facts)


def _source(key: str, title: str, texts: Iterable[str]) -> Source:
    return Source(key, title or "untitled", [Fact(text) for text in texts])


def _passages(text: str) -> Iterator[str]:
    """Yield passages of whole sentences, of about a hundred words each."""
    flat = flatten(text)
    held: list[str] = []
    words = 0
    for start, end in sentence_spans(flat):
        sentence = flat[start:end]
        count = len(sentence.split())
        if held and words + count > _WORDS:
            yield " ".join(held)
            held, words = [], 0
        held.append(sentence)
        words += count
    if words >= _MIN_WORDS:
        yield " ".join(held)


def _place(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
