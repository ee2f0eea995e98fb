"""Two entries as the pairs of sentences that speak of the same, each measured."""

import re
from collections.abc import Sequence

from .sentence import Sentence, read_sentence
from .signals import Measured, measure
from .values import Clash, Statement
from .vocabulary import LEADS, QUESTION_KINDS
from .words import sentences_of

# What tells whether two questions ask the same, where both entries answer one.
_OF_QUESTIONS = (
    "overlap", "containment", "slots", "names", "subjects", "fronts", "scopes", "length",
)  # fmt: skip
_OTHER_ANSWER = 0.5  # share of the shorter answer's words that the other lacks
_SENTENCES = 12  # of an entry that are compared; it is one fact


def measure_pair(first: Statement, second: Statement) -> tuple[Measured, ...]:
    """Measure the sentences of the shorter statement, each beside its nearest one.

    Where both answer a question, the questions tell whether they speak of the same
    matter, and the answers whether they say the same. Empty where one has no words.
    """
    ours, theirs = _sentences(first), _sentences(second)
    if not ours or not theirs:
        return ()
    asked = _asked(first, second)
    if len(ours) <= len(theirs):
        pairs = [(one, _nearest(one, theirs)) for one in ours]
    else:
        pairs = [(_nearest(other, ours), other) for other in theirs]
    questions = first.question, second.question
    coverage = min(len(ours), len(theirs)) / max(len(ours), len(theirs))
    return tuple(
        _with_questions(measure(one, other), one, other, asked, questions, coverage)
        for one, other in pairs
    )


def _sentences(statement: Statement) -> list[Sentence]:
    spans = sentences_of(statement.text)[:_SENTENCES]
    read = (read_sentence(statement.text, statement.language, span) for span in spans)
    return [sentence for sentence in read if sentence is not None]


def _nearest(one: Sentence, others: Sequence[Sentence]) -> Sentence:
    def shared(other: Sentence) -> tuple[bool, float, int]:
        both = one.stems & other.stems
        dimensions = {q.dimension for q in one.quantities}
        values = {q.dimension for q in other.quantities}
        return (
            [word.said for word in one.words] == [word.said for word in other.words],
            len(both) / max(1, len(one.stems | other.stems)),
            len(dimensions & values),
        )

    return max(others, key=shared)


def _asked(first: Statement, second: Statement) -> Measured | None:
    if not (first.question and second.question):
        return None
    one = read_sentence(first.question, first.language)
    other = read_sentence(second.question, second.language)
    return measure(one, other) if one and other else None


def _with_questions(
    measured: Measured,
    one: Sentence,
    other: Sentence,
    asked: Measured | None,
    questions: tuple[str, str],
    coverage: float,
) -> Measured:
    numbers = {
        **measured.numbers,
        "coverage": coverage,
        "answer": 0.0,
        "lead": 0.0,
        "kinds": 0.0,
    }
    if asked is None:
        return Measured(numbers, measured.clashes)
    clashes: list[Clash] = list(measured.clashes)
    leads = _lead(one), _lead(other)
    if 0 in leads and not numbers["agreeing"]:
        numbers["answer"] = 1 - measured.numbers["containment"]
    numbers["kinds"] = float(_other_kind(*questions))
    for name in _OF_QUESTIONS:
        numbers[name] = asked.numbers[name]
    if 0 not in leads and leads[0] != leads[1]:
        numbers["lead"] = 1.0
        clashes.insert(
            0, Clash("lead", one.words[0].span, other.words[0].span, "Yes against no.")
        )
    elif numbers["answer"] > _OTHER_ANSWER and not any(
        c.signal == "value" for c in clashes
    ):
        clashes.append(Clash("answer", one.span, other.span, "Different answers."))
    return Measured(numbers, tuple(clashes))


def _lead(sentence: Sentence) -> int:
    return LEADS.get(sentence.words[0].said, 0)


def _other_kind(question: str, other: str) -> bool:
    """Tell whether one asks when and the other where."""
    kinds = _kind(question), _kind(other)
    return all(kinds) and kinds[0] != kinds[1]


def _kind(question: str) -> str:
    words = " ".join(re.findall(r"\w+", question.lower()))
    return next((k for phrase, k in QUESTION_KINDS.items() if phrase in words), "")
