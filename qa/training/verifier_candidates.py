"""Candidate entries for each question, from which a verifier's examples are made."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from kb.embedding.embedder import load_bundled
from kb.text.layout import parts_of, written_out
from probes.verifier.fitting import Example
from probes.verifier.reading import Reader, Tokens
from probes.verifier.scoring import place_of

from .exchanges import Exchange, Exchanges
from .knowledge_sets import KnowledgeSet, SourceEntry, SourceQuestion
from .verifier_parts import most_alike, take_apart

_CANDIDATES: Final = 12  # per question
_WORDS_WEIGHT: Final = 0.5
_CHUNK: Final = 512
_TITLED: Final = 0.6  # share of the entries that are read with their title
_PARTS: Final = 2  # per question: the most answer-like parts that do not answer

_Text = tuple[str, str, str]  # an entry's place, question and text, as read


def retrieve(known: KnowledgeSet, questions: Sequence[str]) -> list[list[int]]:
    """Return for each question the positions of the most answer-like entries.

    They are ranked by similarity to the entry's text or question and by shared words,
    each standardised.
    """
    embedder = load_bundled()
    texts = [f"{e.question} {e.text}".strip() for e in known.entries]
    vectors = embedder.encode(texts)
    by_question = vectors.copy()
    if paired := [at for at, each in enumerate(known.entries) if each.question]:
        by_question[paired] = embedder.encode(
            [known.entries[at].question for at in paired]
        )
    wanted = embedder.encode(list(questions))
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    entry_words, question_words = words.transform(texts), words.transform(questions)
    found: list[list[int]] = []
    for start in range(0, len(questions), _CHUNK):
        part = slice(start, start + _CHUNK)
        near = np.maximum(wanted[part] @ vectors.T, wanted[part] @ by_question.T)
        shared = (question_words[part] @ entry_words.T).toarray()
        score = _standard(near) + _WORDS_WEIGHT * _standard(shared)
        best = np.argsort(-score, axis=1)[:, :_CANDIDATES]
        found += [[int(at) for at in row] for row in best]
    return found


def _standard(scores: np.ndarray) -> np.ndarray:
    spread = scores.std(axis=1, keepdims=True)
    standard: np.ndarray = (scores - scores.mean(axis=1, keepdims=True)) / (
        spread + 1e-6
    )
    return standard


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A question with texts that answer it and texts that do not.

    Attributes:
        answering: Each with the part of it that answers, as read on its own; None if
            that is not known.
    """

    question: str
    answering: Sequence[tuple[_Text, _Text | None]]
    others: Sequence[_Text]


def examples_of(
    known: KnowledgeSet, reader: Reader, seed: int, limit: int, exchanged: float
) -> list[Example]:
    """Return each question with texts that answer it and retrieved ones that do not.

    Retrieved entries with the answer's marked words count as neither. If the words are
    in one part of an entry, that part answers on its own, and the entry without it does
    not. A share of the answerable questions is added with one thing exchanged: what
    answered the original no longer does.
    """
    chance = random.Random(f"{seed} {known.name}")  # noqa: S311  # a sample
    rows = list(known.questions)
    if limit < len(rows):
        rows = chance.sample(rows, limit)
    found = retrieve(known, [row.text for row in rows])
    texts = [_as_read(entry, chance) for entry in known.entries]
    drawn: list[_Drawn] = []
    exchanges: list[_Drawn] = []
    made = Exchanges(known, chance)
    for row, places in zip(rows, found, strict=True):
        each = _draw(
            known, row, texts, [p for p in places if not known.answers(row, p)]
        )
        if each.others:
            drawn.append(each)
        is_drawn = each.answering and chance.random() < exchanged
        if is_drawn and (other := made.exchange(row)):
            exchanges.append(_exchanged(other, each))
    return _read([*drawn, *exchanges], reader)


def _draw(
    known: KnowledgeSet,
    asked: SourceQuestion,
    texts: Sequence[_Text],
    others: Sequence[int],
) -> _Drawn:
    answering: list[tuple[_Text, _Text | None]] = []
    parts: list[_Text] = []

    def add_alike(place: str, said: Sequence[str]) -> None:
        alike = most_alike(asked.text, said)[:_PARTS]
        parts.extend((place, "", part) for part in alike)

    for at in sorted(asked.answered_by):
        place, question, _ = texts[at]
        apart = take_apart(known.entries[at].text, asked.words)
        if apart is None:
            answering.append((texts[at], None))
            continue
        # With the words in several parts, one of them may not answer ("Paris is
        # large.").
        part = (place, "", apart.answering[0]) if len(apart.answering) == 1 else None
        answering += [(text, part) for text in (texts[at], part) if text]
        if apart.rest:
            parts.append((place, question, written_out(apart.rest)))
        add_alike(place, apart.others)
    if not asked.answered_by and others:
        nearest = others[0]
        said = [part.read for part in parts_of(known.entries[nearest].text)]
        if len(said) > 1:
            add_alike(texts[nearest][0], said)
    return _Drawn(asked.text, answering, [*parts, *(texts[at] for at in others)])


def _exchanged(exchange: Exchange, drawn: _Drawn) -> _Drawn:
    """Return an exchanged question with the entries that do not answer it."""
    entry = exchange.entry
    place = place_of(entry.title, entry.section) if entry else ""
    return _Drawn(
        exchange.text,
        [((place, entry.question, entry.text), None)] if entry else [],
        [*(text for text, _ in drawn.answering), *drawn.others],
    )


def _read(drawn: Sequence[_Drawn], reader: Reader) -> list[Example]:
    """Return the examples, reading each text once and keeping its best window."""
    texts = dict.fromkeys(
        text
        for each in drawn
        for text in (*(t for t, _ in each.answering), *each.others)
    )
    windows = [reader.windows(*text) for text in texts]
    read = iter(reader.read([row for rows in windows for row in rows]))
    states = {
        text: [next(read) for _ in rows]
        for text, rows in zip(texts, windows, strict=True)
    }
    questions = reader.questions([each.question for each in drawn])
    return [
        Example(
            question,
            tuple(
                _nearest(states[text], states[part][0] if part else question)
                for text, part in each.answering
            ),
            tuple(_nearest(states[text], question) for text in each.others),
        )
        for each, question in zip(drawn, questions, strict=True)
    ]


def _nearest(windows: Sequence[Tokens], wanted: Tokens) -> Tokens:
    """Return the window that shares the most tokens with `wanted`."""
    ids = np.unique(wanted.ids)
    return max(windows, key=lambda each: int(np.isin(ids, each.ids).sum()))


def _as_read(entry: SourceEntry, chance: random.Random) -> _Text:
    """Return an entry with or without its title: real titles may be bad or missing."""
    is_titled = chance.random() < _TITLED
    place = place_of(entry.title, entry.section) if is_titled else ""
    return place, entry.question, written_out(entry.text)
