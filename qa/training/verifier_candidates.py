"""The entries that look most like an answer to a question, as a verifier is fitted on them."""

import random
from collections.abc import Sequence
from typing import Final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from kb.embedding.embedder import load_embedder
from probes.verifier.fitting import Example
from probes.verifier.reading import Reader, Tokens
from probes.verifier.scoring import place_of

from .exchanges import Exchange, Exchanges
from .knowledge_sets import KnowledgeSet, SourceEntry

_CANDIDATES: Final = 12  # of a question
_WORDS_WEIGHT: Final = 0.5
_CHUNK: Final = 512
_TITLED: Final = 0.6  # share of the entries that are read with their title


def retrieve(known: KnowledgeSet, questions: Sequence[str]) -> list[list[int]]:
    """Return for each question the places of the entries that look most like an answer.

    By nearness to the entry's text or question and by words, each standardised.
    """
    embedder = load_embedder("bundled")
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


def examples_of(
    known: KnowledgeSet, reader: Reader, seed: int, limit: int, exchanged: float
) -> list[Example]:
    """Return each question with what answers it and what was retrieved and does not.

    What holds the words that were marked as the answer counts as neither. A share of the
    answerable questions follows with one thing exchanged: what answered no longer does.
    """
    chance = random.Random(f"{seed} {known.name}")  # noqa: S311  # a sample
    rows = list(known.questions)
    if limit < len(rows):
        rows = chance.sample(rows, limit)
    found = retrieve(known, [row.text for row in rows])
    texts = [_as_read(entry, chance) for entry in known.entries]
    needed = sorted(
        {at for row in found for at in row} | {p for r in rows for p in r.answered_by}
    )
    windows = [reader.windows(*texts[at])[0] for at in needed]
    states = dict(zip(needed, reader.read(windows), strict=True))
    examples = []
    exchanges: list[tuple[Exchange, tuple[Tokens, ...]]] = []
    made = Exchanges(known, chance)
    questions = reader.questions([row.text for row in rows])
    for row, places, tokens in zip(rows, found, questions, strict=True):
        others = tuple(states[at] for at in places if not known.answers(row, at))
        answering = tuple(states[at] for at in sorted(row.answered_by))
        if others:
            examples.append(Example(tokens, answering, others))
        is_drawn = answering and chance.random() < exchanged
        if is_drawn and (other := made.exchange(row)):
            exchanges.append((other, (*answering, *others)))
    return [*examples, *_exchanged(exchanges, reader)]


def _exchanged(
    exchanges: Sequence[tuple[Exchange, tuple[Tokens, ...]]], reader: Reader
) -> list[Example]:
    """Return exchanged questions, each with the entries that do not answer it."""
    entries = {e: _window(e, reader) for each, _ in exchanges if (e := each.entry)}
    states = dict(zip(entries, reader.read([*entries.values()]), strict=True))
    questions = reader.questions([each.text for each, _ in exchanges])
    return [
        Example(tokens, (states[each.entry],) if each.entry else (), others)
        for tokens, (each, others) in zip(questions, exchanges, strict=True)
    ]


def _window(entry: SourceEntry, reader: Reader) -> tuple[list[int], list[int]]:
    place = place_of(entry.title, entry.section)
    return reader.windows(place, entry.question, entry.text)[0]


def _as_read(entry: SourceEntry, chance: random.Random) -> tuple[str, str, str]:
    """Return an entry with its place or without: knowledge has good titles, bad and none."""
    is_titled = chance.random() < _TITLED
    place = place_of(entry.title, entry.section) if is_titled else ""
    return place, entry.question, entry.text
