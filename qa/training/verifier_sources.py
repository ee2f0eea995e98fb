"""What a verifier is fitted on: entries, and questions that some of them answer or none.

Every reader takes a file as its source published it, plain or gzipped. The questions about
ninety-six invented organisations (`support_desks/`) and the answers to the questions of
BANKING77 were written for this project.
"""

import csv
import gzip
import json
import random
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TextIO

from kb.text.words import sentences
from qa.exceptions import TrainingDataError
from qa.pipeline.choice import Passage

SUPPORT_DESKS: Final = Path(__file__).parent / "support_desks"
_BANKING77: Final = Path(__file__).parent / "banking77.jsonl"
HELD_OUT_FAQ: Final = "stack_faq_held_out"
_ANSWER_WORDS: Final = 150  # of an answer of StackFAQ, some of which are essays
_CR_MEMBER: Final = "rationales/word_att_gold_train.tsv"
_CR_REASONS: Final = "causes/reason_gold_train.tsv"
# Questions with one answer: the first is the entry's own, the others are asked of it.
_PARAPHRASES: Final = 3
_PARAGRAPH_WORDS: Final = 100


@dataclass(frozen=True, slots=True)
class SourceEntry:
    text: str
    title: str = ""
    section: str = ""
    question: str = ""

    @property
    def passage(self) -> Passage:
        return Passage(self.title, self.section, self.question, self.text)


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question, the places of the entries that answer it, and the words that do."""

    text: str
    answered_by: frozenset[int]
    words: str = ""
    group: str = ""


@dataclass(slots=True)
class KnowledgeSet:
    """One source as a knowledge base."""

    name: str
    licence: str
    entries: list[SourceEntry] = field(default_factory=list)
    questions: list[SourceQuestion] = field(default_factory=list)
    _places: dict[SourceEntry, int] = field(default_factory=dict)

    def place(self, entry: SourceEntry) -> int:
        """Return the entry's place; one that is already there keeps its own."""
        if entry not in self._places:
            self._places[entry] = len(self.entries)
            self.entries.append(entry)
        return self._places[entry]

    def ask(
        self, text: str, places: Iterable[int], words: str = "", group: str = ""
    ) -> None:
        plain = " ".join(text.split())
        self.questions.append(SourceQuestion(plain, frozenset(places), words, group))

    def answers(self, question: SourceQuestion, place: int) -> bool:
        """Tell whether an entry answers: it is marked, or has the answer's words."""
        words = _plain(question.words) if len(question.words) > 2 else ""
        text = _plain(self.entries[place].text)
        return place in question.answered_by or bool(
            words and f" {words} " in f" {text} "
        )


def read_support_desks() -> list[KnowledgeSet]:
    return [_support_desk(file) for file in sorted(SUPPORT_DESKS.glob("*.jsonl"))]


def _support_desk(file: Path) -> KnowledgeSet:
    found = KnowledgeSet(file.stem, "written for this project")
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        entry = {name: row[name] for name in ("text", "title", "section", "question")}
        place = found.place(SourceEntry(**entry))
        for text in row["answered_by_this"]:
            found.ask(text, [place])
        for text in row["near_misses"]:
            found.ask(text, [])
    return found


def read_banking77(file: Path) -> KnowledgeSet:
    """Read customers' questions to a bank, each answered by the entry of its intent."""
    found = KnowledgeSet("banking77", "CC BY 4.0")
    place_of: dict[str, int] = {}
    for line in _BANKING77.read_text("utf-8").splitlines():
        row = json.loads(line)
        entry = SourceEntry(row["text"], question=row["question"])
        place_of[row["intent"]] = found.place(entry)
    with _open(file) as stream:
        for row in csv.DictReader(stream):
            if intent := row["category"]:  # a copy of the file has three rows without
                found.ask(row["text"], [place_of[intent]], group=intent)
    return found


def read_stack_faq(file: Path) -> tuple[KnowledgeSet, KnowledgeSet]:
    """Read threads about web applications, each with what people ask instead of its title.

    Every second thread is a knowledge base of its own, which nothing is fitted on.
    """
    fitted, held_out = (
        KnowledgeSet(name, "CC BY-SA") for name in ("stack_faq", HELD_OUT_FAQ)
    )
    for number, row in enumerate(_json(file)["root"]["qapair"]):
        known = held_out if number % 2 else fitted
        text = " ".join(row["answer"][0].split()[:_ANSWER_WORDS])
        place = known.place(SourceEntry(text, question=row["question"]))
        for other in row["rephr"]:
            if other and any(map(str.isalnum, other)):
                known.ask(other, [place], group=str(place))
    return fitted, held_out


def read_squad(
    file: Path, *, name: str, licence: str, articles: Sequence[str] = ()
) -> KnowledgeSet:
    """Read SQuAD's layout; a marked answer's sentence answers, by its words."""
    found = KnowledgeSet(name, licence)
    for article in _json(file)["data"]:
        if articles and article["title"] not in articles:
            continue
        for paragraph in article["paragraphs"]:
            title = article["title"].replace("_", " ")
            entries = [
                SourceEntry(text, title) for text in _sentences(paragraph["context"])
            ]
            for question in paragraph["qas"]:
                _ask_marked(found, entries, question, article["title"])
    return found


def in_paragraphs(known: KnowledgeSet, *, seed: int) -> KnowledgeSet:
    """Return the same questions beside entries of two to five neighbouring sentences.

    What people import is seldom one sentence an entry.
    """
    found = KnowledgeSet(f"{known.name}_paragraphs", known.licence)
    chance = random.Random(f"{seed} {known.name}")  # noqa: S311  # nothing secret
    paragraph_of: list[int] = []
    for title, rows in groupby(known.entries, lambda entry: entry.title):
        texts = [entry.text for entry in rows]
        while texts:
            count = chance.randint(2, 5)
            while count > 1 and len(" ".join(texts[:count]).split()) > _PARAGRAPH_WORDS:
                count -= 1
            joined = " ".join(texts[:count])
            place = found.place(SourceEntry(joined, title))
            paragraph_of += [place] * len(texts[:count])
            del texts[:count]
    for asked in known.questions:
        places = {paragraph_of[at] for at in asked.answered_by}
        found.ask(asked.text, places, asked.words, asked.group)
    return found


def _ask_marked(
    found: KnowledgeSet,
    entries: Sequence[SourceEntry],
    question: Mapping[str, Any],
    group: str,
) -> None:
    places = [found.place(entry) for entry in entries]
    if question.get("is_impossible", False):
        found.ask(question["question"], [], group=group)
        return
    marked = [" ".join(answer["text"].split()) for answer in question["answers"]]
    holding = {
        next((p for p, e in zip(places, entries, strict=True) if words in e.text), None)
        for words in marked
    } - {None}
    if holding:
        answering = [place for place in holding if place is not None]
        found.ask(question["question"], answering, marked[0], group)


def read_squad_train(
    contexts: Path, pairs: Path, unanswerable: Path, *, limit: int, seed: int
) -> KnowledgeSet:
    """Read parts of SQuAD's training set as one knowledge base.

    The questions that SQuAD2-CR marks as unanswerable come without a paragraph: what is
    retrieved for them among the others' sentences looks like an answer and is none.
    """
    found = KnowledgeSet("squad_train", "CC BY-SA 4.0")
    for row in _json(contexts):
        entries = [SourceEntry(text) for text in _sentences(row["context"])]
        for question in row["qas"]:
            answers = [{"text": question["answer"]}]
            _ask_marked(found, entries, {**question, "answers": answers}, "")
    rows = _json(pairs)
    for text, sentence in zip(rows["questions"], rows["answers"], strict=True):
        place = found.place(SourceEntry(" ".join(sentence.split())))
        found.ask(text, [place])
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    for text in chance.sample(_unanswerable(unanswerable), limit):
        found.ask(text, [])
    return found


def _unanswerable(file: Path) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        reasons = {line.split("\t")[0] for line in _member(archive, _CR_REASONS)}
        rows = [line.split("\t") for line in _member(archive, _CR_MEMBER)]
    return sorted({_joined(row[1]) for row in rows if row[0] in reasons})


def _member(archive: zipfile.ZipFile, name: str) -> list[str]:
    with archive.open(name) as stream:
        return TextIOWrapper(stream, "utf-8").read().splitlines()[1:]


def _joined(text: str) -> str:
    """Undo the source's spaces before punctuation: a sign that nobody would type."""
    for mark in (",", ".", ";", ":", "!", "?", "%", ")", "'s", "n't", "'"):
        text = text.replace(f" {mark}", mark)
    return text.replace("( ", "(")


def read_selqa(file: Path) -> KnowledgeSet:
    found = KnowledgeSet("selqa", "Apache-2.0")
    for row in _json(file):
        places = [
            found.place(SourceEntry(text, row["article"], row["section"]))
            for text in row["candidates"]
        ]
        answering = [places[at] for at in row["answers"]]
        found.ask(row["question"], answering, group=row["article"])
    return found


def read_qamr(
    sentence_file: Path, question_files: Sequence[Path], *, seed: int
) -> tuple[KnowledgeSet, KnowledgeSet]:
    """Read QAMR as facts, and as question-and-answer entries with their paraphrases.

    Two questions that mark the same words of a sentence ask the same; others about that
    sentence are entries beside them.
    """
    facts = KnowledgeSet("qamr_facts", "MIT")
    pairs = KnowledgeSet("qamr_pairs", "MIT")
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    with _open(sentence_file) as stream:
        rows = [line.rstrip("\n").partition("\t") for line in stream]
    sentence_of = {key: text for key, _, text in rows}
    by_sentence: dict[str, dict[tuple[int, ...], list[str]]] = {}
    for file in question_files:
        with _open(file) as stream:
            for line in stream:
                cells = line.split("\t")
                if cells[0] in sentence_of:
                    marked = tuple(int(at) for at in cells[6].split())
                    alike = by_sentence.setdefault(cells[0], {}).setdefault(marked, [])
                    alike.append(cells[5])
    for key, by_words in by_sentence.items():
        tokens = sentence_of[key].split()
        fact = facts.place(SourceEntry(_joined(sentence_of[key])))
        for marked, questions in by_words.items():
            words = _joined(" ".join(tokens[at] for at in marked))
            alike = sorted(set(questions))
            chance.shuffle(alike)
            entry = SourceEntry(f"{words[:1].upper()}{words[1:]}.", question=alike[0])
            place = pairs.place(entry)
            for text in alike[1:_PARAPHRASES]:
                pairs.ask(text, [place], group=key)
            facts.ask(alike[0], [fact], words, key)
    return facts, pairs


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def _sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [each for each in sentences(plain) if any(map(str.isalnum, each))]


def _json(file: Path) -> Any:  # noqa: ANN401  # as it is in the file
    with _open(file) as stream:
        try:
            return json.load(stream)
        except ValueError as error:
            raise TrainingDataError(f"{file} is not JSON: {error}.") from error


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")


def find(directory: Path, name: str) -> Path:
    """Return the file `name` below a directory, plain or gzipped."""
    for wanted in (name, f"{name}.gz"):
        found = sorted(directory.rglob(wanted))
        if found:
            return found[0]
    raise TrainingDataError(
        f"There is no {name} below {directory}. Give --data the directory that "
        "holds the public data; docs/explanation/verifier.md lists the files."
    )
