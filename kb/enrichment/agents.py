"""The three agents of enrichment, and how much their answers can be trusted.

Embeddings put "in 1945" next to "in 1946" and "is" next to "is not"; the comparisons
here tell them apart. English and German; in other languages only numbers and words
count.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kb.text.terms import same_numbers_and_denial, terms

from .forms import ANSWERS, ANSWERS_AGAIN, QUESTIONS, SENTENCES, Completion, Writer


def normalised(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def is_faithful(sentence: str, question: str, answer: str) -> bool:
    """Return whether a sentence states what the answer does, and no more.

    Its numbers are those of the answer and possibly of the question. It is negated if
    and only if the answer is, unless the question is. At most a quarter of its content
    words are new, and it has at least half of the words that the answer adds.
    """
    said, before, found = terms(sentence), terms(question), terms(answer)
    if not found.numbers <= said.numbers <= found.numbers | before.numbers:
        return False
    if said.is_negated != found.is_negated and not before.is_negated:
        return False
    words, known = set(said.words), {*before.words, *found.words}
    if not words or len(words - known) > len(words) / 4:
        return False
    added = set(found.words) - set(before.words)
    return len(added & words) * 2 >= len(added)


MAX_UNREVIEWED_CONFIDENCE: Final = 0.6
"""Confidence of an answer with perfect signals, before any was reviewed."""
MIN_CONFIDENCE: Final = 0.02  # no entry has less: the hard gate divides by it


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals of one answer, in [0, 1]; not every model reports likelihoods."""

    stated: float
    agreement: float
    likelihood: float | None


def token_likelihood(log_probability: float | None) -> float | None:
    """Return a token's geometric mean probability from the mean log-probability."""
    return None if log_probability is None else math.exp(min(0.0, log_probability))


def measure_agreement(
    answer: str, samples: Sequence[str | None], vectors: Sequence[np.ndarray]
) -> float:
    """Return how far the samples agree with the answer, in [0, 1].

    A sample in the same words counts 1, one in other words counts the cosine
    similarity, and one with other numbers or negation, or an unreadable one, counts 0.
    `vectors` are unit vectors, of the answer and then of each sample.
    """
    if not samples:
        return 0.0
    total = 0.0
    for sample, vector in zip(samples, vectors[1:], strict=True):
        if sample is None or not same_numbers_and_denial(answer, sample):
            continue
        if normalised(answer) == normalised(sample):
            total += 1.0
        else:
            total += min(1.0, max(0.0, float(vectors[0] @ vector)))
    return total / len(samples)


def unreviewed_confidence(signals: Signals) -> float:
    """Return the confidence before any review: the least signal, scaled down."""
    known = [signals.stated, signals.agreement]
    if signals.likelihood is not None:
        known.append(signals.likelihood)
    return max(MIN_CONFIDENCE, MAX_UNREVIEWED_CONFIDENCE * min(known))


TEMPERATURE: Final = 0.7
MAX_TURNS: Final = 4
_APART: Final = 1_000_003  # offset between the random seeds of turns
SAMPLES: Final = 5

Encode = Callable[[Sequence[str]], np.ndarray]
"""Maps texts to unit vectors, float32 of shape (texts, dimensions)."""


@dataclass(frozen=True, slots=True)
class SeededQuestion:
    seed: str
    question: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted proposal; without a faithful `sentence`, a question and its answer."""

    seed: str
    question: str
    answer: str
    sentence: str
    signals: Signals

    @property
    def said(self) -> str:
        """Its whole content as one text."""
        return self.sentence or f"{self.question} {self.answer}"


@dataclass(frozen=True, slots=True)
class Drafts:
    """The drafts of one batch, and counts of those left out or repaired, by cause."""

    made: tuple[Draft, ...]
    counts: Counter[str] = field(default_factory=Counter)


def generate_questions(
    writer: Writer, seeds: Sequence[str], *, per_seed: int, seed: int
) -> tuple[tuple[SeededQuestion, ...], Counter[str]]:
    """Let the first agent write `per_seed` distinct questions like each seed.

    The agent is asked again for those it repeated, until there are enough, it has
    nothing new, or `MAX_TURNS` is reached. Counts "unreadable_question" and "repeated".
    With `per_seed` 0 the seeds are the questions.
    """
    counts: Counter[str] = Counter()
    if per_seed == 0:
        return tuple(SeededQuestion(text, text) for text in seeds), counts
    known = {normalised(text) for text in seeds}
    questions: list[SeededQuestion] = []
    missing = dict.fromkeys(seeds, per_seed)
    for turn in range(MAX_TURNS):
        given = [
            {"seed": text} for text, count in missing.items() for _ in range(count)
        ]
        before = len(questions)
        written = writer.fill_in(
            QUESTIONS, given, temperature=TEMPERATURE, seed=seed + _APART * turn
        )
        for about, completion in zip(given, written, strict=True):
            if completion is None:
                counts["unreadable_question"] += 1
                continue
            question = completion.text("question")
            key = normalised(question)
            if key in known:
                counts["repeated"] += 1
                continue
            known.add(key)
            missing[about["seed"]] -= 1
            questions.append(SeededQuestion(about["seed"], question))
        # A model that produced nothing new will not produce more.
        if len(questions) == before or not any(missing.values()):
            break
    return tuple(questions), counts


def answer(
    writer: Writer,
    encode: Encode,
    questions: Sequence[SeededQuestion],
    *,
    samples: int = SAMPLES,
    seed: int,
) -> Drafts:
    """Let the second agent answer, and the third make a sentence of each answer.

    Each question is answered once for use and `samples` times at a temperature, to see
    whether the model repeats itself. A sentence that states less or more than the
    answer is not used: the draft is then a question with its answer.
    """
    counts: Counter[str] = Counter()
    given = [{"question": seeded.question} for seeded in questions]
    first = writer.fill_in(ANSWERS, given, temperature=0, seed=seed)
    answered = [
        (seeded, found)
        for seeded, found in zip(questions, first, strict=True)
        if found is not None
    ]
    counts["unreadable_answer"] += len(questions) - len(answered)
    if not answered:
        return Drafts((), counts)
    others = writer.fill_in(
        ANSWERS_AGAIN,
        [
            {"question": seeded.question}
            for seeded, _ in answered
            for _ in range(samples)
        ],
        temperature=TEMPERATURE,
        seed=seed,
    )
    agreements = _agreements([found for _, found in answered], others, encode)
    pairs = [
        {"question": seeded.question, "answer": found.text("answer")}
        for seeded, found in answered
    ]
    sentences = writer.fill_in(SENTENCES, pairs, temperature=0, seed=seed)
    made = []
    for (seeded, found), sentence, agreement in zip(
        answered, sentences, agreements, strict=True
    ):
        said = _sentence(seeded.question, found.text("answer"), sentence)
        counts["plain_sentence"] += said is None
        made.append(
            Draft(
                seed=seeded.seed,
                question=seeded.question,
                answer=found.text("answer"),
                sentence=said or "",
                signals=Signals(
                    stated=float(found.values["confidence"]),
                    agreement=agreement,
                    likelihood=token_likelihood(found.log_probability),
                ),
            )
        )
    return Drafts(tuple(made), counts)


def _sentence(question: str, said: str, completion: Completion | None) -> str | None:
    if completion is None:
        return None
    sentence = completion.text("sentence")
    return sentence if is_faithful(sentence, question, said) else None


def _agreements(
    first: Sequence[Completion], others: Sequence[Completion | None], encode: Encode
) -> list[float]:
    samples = len(others) // len(first)
    texts = [found.text("answer") for found in first]
    again = [other.text("answer") if other else None for other in others]
    distinct = list(dict.fromkeys([*texts, *(text for text in again if text)]))
    vectors = dict(zip(distinct, encode(distinct), strict=True))
    nothing = np.zeros_like(vectors[distinct[0]])
    agreements = []
    for number, text in enumerate(texts):
        own = again[number * samples : (number + 1) * samples]
        meant = [vectors[text], *(vectors[o] if o else nothing for o in own)]
        agreements.append(measure_agreement(text, own, meant))
    return agreements
