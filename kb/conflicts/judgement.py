"""Judging by sentence pairs whether two entries are duplicates or contradictions."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kb.text.sentences import Sentence, read_sentence
from kb.text.terms import question_kind
from kb.text.vocabulary import LEADS
from kb.text.words import sentence_spans

from .signals import Measured, measure
from .table_rows import are_of_other_things
from .values import Clash, Judgement, Kind, Statement, likely_kind

# The measurements that show whether two questions ask the same, if both entries have
# one.
_OF_QUESTIONS = (
    "overlap", "containment", "slots", "names", "subjects", "fronts", "scopes", "length",
    "exchanged",
)  # fmt: skip
_OTHER_ANSWER = 0.5  # share of the shorter answer's words that the other lacks
_CHARACTERS = 4_000  # read of each text; what a curator sees at a glance
_SENTENCES = 12  # compared per entry; an entry is one fact


def measure_pair(first: Statement, second: Statement) -> tuple[Measured, ...]:
    """Measure each sentence of the shorter statement against its nearest in the other.

    If both statements have questions, these decide whether the subject is the same.
    """
    ours, theirs = _sentences(first), _sentences(second)
    if not ours or not theirs:
        return ()
    asked = _measure_questions(first, second)
    if len(ours) <= len(theirs):
        pairs = [(one, _nearest(one, theirs)) for one in ours]
    else:
        pairs = [(_nearest(other, ours), other) for other in theirs]
    questions = first.question, second.question
    coverage = min(len(ours), len(theirs)) / max(len(ours), len(theirs))
    heads = None if asked else _compare_heads(first, second)
    found = []
    for one, other in pairs:
        each = _with_questions(
            measure(one, other), one, other, asked, questions, coverage
        )
        leans = _leans(one, first.text) and _leans(other, second.text)
        is_apart = heads is not None and (heads.marks or (leans and heads.subjects))
        found.append(replace(each, numbers={**each.numbers, "rows": float(is_apart)}))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Heads:
    """How the headings of two entries differ, such as "MRI (R55)" and "MRI (R56)"."""

    marks: bool  # in their codes, or by "with" against "without"
    subjects: bool


def _compare_heads(first: Statement, second: Statement) -> _Heads | None:
    texts = [_first_sentence(each.text) for each in (first, second)]
    parts = [_HEAD_END.split(text, maxsplit=1) for text in texts]
    if len(parts[0]) == len(parts[1]) == 2 and parts[0][0] == parts[1][0]:
        parts = [rest[1:] for rest in parts]  # "Procedure:" heads every row
    one, other = (
        read_sentence(said[0], each.language)
        for said, each in zip(parts, (first, second), strict=True)
    )
    if one is None or other is None:
        return None
    numbers = measure(one, other).numbers
    if not all(_HEAD_END.search(t) or t[-1] not in ".!?" for t in texts):
        return _Heads(marks=False, subjects=numbers["subjects"] > 0)
    codes = [frozenset(_CODE.findall(said[0])) for said in parts]
    said_apart = {word.said for word in one.words} ^ {word.said for word in other.words}
    return _Heads(
        marks=(all(codes) and not codes[0] & codes[1]) or said_apart >= _WITHOUT,
        subjects=numbers["subjects"] > 0 or numbers["exchanged"] > 0,
    )


def _first_sentence(text: str) -> str:
    spans = sentence_spans(text[:_CHARACTERS], clauses=True)
    return spans[0].within(text).strip() if spans else ""


def _leans(sentence: Sentence, text: str) -> bool:
    """Return whether its subject precedes it: "Length: 30 min", "It takes 30 min"."""
    if not sentence.span.start:
        return False
    label = _FIELD.match(text, sentence.span.start)
    return label is not None or sentence.words[0].said in _PRONOUNS


_HEAD_END: Final = re.compile(r":\s+|\s\|\s")
_FIELD: Final = re.compile(r"(?:[^\W\d]\S*\s){0,4}[^\W\d]\S*:\s")
_CODE: Final = re.compile(r"\b[^\W\d_]{1,4}[-/]?\d+\b")
_WITHOUT: Final = frozenset({"with", "without"})
_PRONOUNS: Final = frozenset({"it", "they", "this", "these", "er", "sie", "es"})


def _sentences(statement: Statement) -> list[Sentence]:
    text = statement.text[:_CHARACTERS]
    spans = sentence_spans(text, clauses=True)[:_SENTENCES]
    read = (read_sentence(text, statement.language, span) for span in spans)
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


def _measure_questions(first: Statement, second: Statement) -> Measured | None:
    if not (first.question and second.question):
        return None
    one = read_sentence(first.question[:_CHARACTERS], first.language)
    other = read_sentence(second.question[:_CHARACTERS], second.language)
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
        "shared": measured.numbers["containment"],
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
    kinds = question_kind(question), question_kind(other)
    return all(kinds) and kinds[0] != kinds[1]


SAME_MATTER: Final = (
    "distance", "overlap", "containment", "slots", "names", "subjects", "fronts",
    "scopes", "kinds", "shared_dimension", "lone_dimension", "length", "agreeing",
)  # fmt: skip
SAYS_OTHERWISE: Final = (
    "value", "count", "agreeing", "negation", "axis", "axis_agreeing", "antonym",
    "answer", "lead", "clashing",
)  # fmt: skip
_SHIPPED: Final = Path(__file__).with_name("weights.json")


@dataclass(frozen=True, slots=True)
class Logistic:
    intercept: float
    weights: Mapping[str, float]

    def probability(self, numbers: Mapping[str, float]) -> float:
        odds = self.intercept + sum(
            weight * numbers.get(name, 0.0) for name, weight in self.weights.items()
        )
        return 1 / (1 + math.exp(-max(-40.0, min(40.0, odds))))


@dataclass(frozen=True, slots=True)
class Model:
    """The two logistic models, and the signals ignored in an ablation."""

    version: str
    same_matter: Logistic
    says_otherwise: Logistic
    ignored_signals: frozenset[str] = frozenset()


def load_model(path: Path = _SHIPPED) -> Model:
    written = json.loads(path.read_text(encoding="utf-8"))
    return Model(
        written["version"],
        Logistic(**written["same_matter"]),
        Logistic(**written["says_otherwise"]),
    )


MODEL: Final = load_model()


def measure_signals(
    first: Statement,
    second: Statement,
    *,
    distance: float,
    ignored_signals: frozenset[str] = frozenset(),
) -> tuple[Measured, ...]:
    found = []
    for each in measure_pair(first, second):
        heard = tuple(
            clash for clash in each.clashes if clash.signal not in ignored_signals
        )
        also = {"distance": distance, "clashing": float(bool(heard))}
        found.append(Measured({**each.numbers, **also}, heard))
    return tuple(found)


def judge(
    first: Statement, second: Statement, *, distance: float, model: Model = MODEL
) -> Judgement:
    """Judge how two entries relate; symmetric in its arguments.

    The sentence pair that contradicts most decides on a contradiction. A duplicate
    needs all pairs to agree, and none may mean another thing in otherwise the same
    words ("no yearly fee", "no travel insurance"). `distance` is Euclidean, in [0, 2].
    """
    if (second.text, second.question) < (first.text, first.question):
        found = judge(second, first, distance=distance, model=model)
        clashes = (replace(c, first=c.second, second=c.first) for c in found.clashes)
        return replace(found, clashes=tuple(clashes))
    measured: Sequence[Measured] = ()
    if not are_of_other_things(first, second):
        measured = measure_signals(
            first, second, distance=distance, ignored_signals=model.ignored_signals
        )
    if not measured:
        certain = {Kind.DIFFERENT: 1.0}
        return Judgement(Kind.DIFFERENT, 1.0, 0.0, (), {"distance": distance}, certain)
    chances = [_chances(each, model) for each in measured]
    decisive = max(range(len(measured)), key=lambda at: chances[at][1])
    same_matter, contradiction = chances[decisive]
    coverage = measured[0].numbers["coverage"]
    duplicate = coverage * min(same - against for same, against in chances)
    if any(_says_another_thing(each.numbers) for each in measured):
        duplicate = min(duplicate, _DOUBTED)
    probabilities = {
        Kind.DUPLICATE: max(0.0, min(duplicate, 1 - contradiction)),
        Kind.CONTRADICTION: contradiction,
    }
    probabilities[Kind.DIFFERENT] = 1 - sum(probabilities.values())
    kind = likely_kind(probabilities)
    return Judgement(
        kind,
        probabilities[kind],
        same_matter,
        measured[decisive].clashes,
        measured[decisive].numbers,
        probabilities,
    )


# The squared distance of two sentences grows with the share of words exchanged and with
# how different those words are. Their ratio separates "fee" against "insurance" from
# "fee" against "charge", whatever else the sentences say: all labelled duplicates that
# are found lie below this value.
_OTHER_WORDS: Final = 0.6
_DOUBTED: Final = 0.5  # a language model may still consider it a duplicate


def _says_another_thing(numbers: Mapping[str, float]) -> bool:
    if numbers["renamed"]:
        return True
    exchanged = numbers["exchanged"]
    return exchanged > 0 and numbers["distance"] ** 2 > _OTHER_WORDS * exchanged


_SHARED: Final = 0.5  # a higher share of the shorter sentence's content words is needed


def _are_rows(measured: Measured) -> bool:
    """Return whether both are rows of one table.

    They are if their headings differ, or if all their plain numbers do and nothing
    else.
    """
    numbers, signals = measured.numbers, {clash.signal for clash in measured.clashes}
    if numbers["rows"]:
        return True
    return numbers["count"] > 1 and not numbers["agreeing"] and signals == {"value"}


def _is_in_passing(measured: Measured) -> bool:
    """Return whether one only denies, or states the opposite of, something else.

    "Claims by e-mail are not accepted" does not deny "Later claims are paid only if you
    could not act", although both are about claims.
    """
    signals = {clash.signal for clash in measured.clashes}
    words = signals <= {"negation", "axis", "only"}
    return bool(signals) and words and measured.numbers["shared"] <= _SHARED


def _chances(measured: Measured, model: Model) -> tuple[float, float]:
    if _are_rows(measured) or _is_in_passing(measured):
        return 0.0, 0.0
    same_matter = model.same_matter.probability(measured.numbers)
    if not measured.clashes:  # there would be nothing to show a curator
        return same_matter, 0.0
    return same_matter, same_matter * model.says_otherwise.probability(measured.numbers)
