"""The entries that look most like an answer to a question, as a verifier gets them."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from kb.embedding.embedder import load_embedder

from .verifier_sources import KnowledgeSet

_CANDIDATES: Final = 12  # of a question
_WORDS_WEIGHT: Final = 0.5
_CHUNK: Final = 512


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
