"""Public question sets in which a sentence is the answer, for fitting a verifier."""

import random
import zipfile
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

from kb.text.words import sentences

from .knowledge_sets import (
    KnowledgeSet,
    SourceEntry,
    open_text,
    read_json,
    read_json_lines,
)

_CR_MEMBER: Final = "rationales/word_att_gold_train.tsv"
_CR_REASONS: Final = "causes/reason_gold_train.tsv"
# Questions per answer: the first becomes the entry's own, the others are asked of it.
_PARAPHRASES: Final = 3
_PARAGRAPH_WORDS: Final = 100


def read_squad(
    file: Path, *, name: str, licence: str, articles: Sequence[str] = ()
) -> KnowledgeSet:
    """Read a file in SQuAD's format; the sentence with the marked answer answers."""
    found = KnowledgeSet(name, licence)
    for article in read_json(file)["data"]:
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
    """Return the same questions over entries of one to five neighbouring sentences.

    Imported entries are seldom single sentences.
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

    The questions that SQuAD2-CR marks as unanswerable come without a paragraph: the
    sentences retrieved for them from other paragraphs look like an answer, but are not.
    """
    found = KnowledgeSet("squad_train", "CC BY-SA 4.0")
    for row in read_json(contexts):
        entries = [SourceEntry(text) for text in _sentences(row["context"])]
        for question in row["qas"]:
            answers = [{"text": question["answer"]}]
            _ask_marked(found, entries, {**question, "answers": answers}, "")
    rows = read_json(pairs)
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
    """Remove the source's spaces before punctuation, which nobody would type."""
    for mark in (",", ".", ";", ":", "!", "?", "%", ")", "'s", "n't", "'"):
        text = text.replace(f" {mark}", mark)
    return text.replace("( ", "(")


def read_selqa(file: Path) -> KnowledgeSet:
    found = KnowledgeSet("selqa", "Apache-2.0")
    for row in read_json(file):
        places = [
            found.place(SourceEntry(text, row["article"], row["section"]))
            for text in row["candidates"]
        ]
        answering = [places[at] for at in row["answers"]]
        found.ask(row["question"], answering, group=row["article"])
    return found


def read_natural_questions(qed: Path, clapnq: Sequence[Path]) -> KnowledgeSet:
    """Read questions typed into a search engine, answered by sentences of a paragraph.

    QED marks one sentence per question; CLAPNQ marks one or more, or none if the
    paragraph from the search engine's best page does not answer.
    """
    found = KnowledgeSet("natural_questions", "CC BY-SA 3.0")
    for row in read_json_lines(qed):
        note = row["annotation"]
        if note["explanation_type"] == "single_sentence":
            starts = [*row["sentence_starts"], len(row["paragraph_text"])]
            texts = [row["paragraph_text"][a:b] for a, b in pairwise(starts)]
            marked = {starts.index(note["selected_sentence"]["start"])}
            _ask_about(found, row["question_text"], row["title_text"], texts, marked)
    for row in (each for file in clapnq for each in read_json_lines(file)):
        passage = row["passages"][0]
        chosen = set(row["output"][0]["selected_sentences"])
        marked = {at for at, e in enumerate(passage["sentences"]) if e in chosen}
        _ask_about(found, row["input"], passage["title"], passage["sentences"], marked)
    return found


def _ask_about(
    found: KnowledgeSet,
    question: str,
    title: str,
    texts: Sequence[str],
    marked: set[int],
) -> None:
    places = [found.place(SourceEntry(_joined(text.strip()), title)) for text in texts]
    found.ask(question, [places[at] for at in marked], group=title)


def read_qamr(
    sentence_file: Path, question_files: Sequence[Path], *, seed: int
) -> tuple[KnowledgeSet, KnowledgeSet]:
    """Read QAMR as facts, and as question-and-answer entries with their paraphrases.

    Questions that mark the same words of a sentence are paraphrases; other questions
    about that sentence become separate entries.
    """
    facts = KnowledgeSet("qamr_facts", "MIT")
    pairs = KnowledgeSet("qamr_pairs", "MIT")
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    with open_text(sentence_file) as stream:
        rows = [line.rstrip("\n").partition("\t") for line in stream]
    sentence_of = {key: text for key, _, text in rows}
    by_sentence: dict[str, dict[tuple[int, ...], list[str]]] = {}
    for file in question_files:
        with open_text(file) as stream:
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


def _sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [each for each in sentences(plain) if any(map(str.isalnum, each))]
