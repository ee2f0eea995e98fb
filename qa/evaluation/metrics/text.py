"""Similarity of an answer's text to the reference answers.

Exact match and token F1 as in SQuAD 2.0's evaluation script: Rajpurkar et al. (ACL
2018). ROUGE-L: Lin (2004).
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


def normalised(text: str) -> str:
    """Normalise as SQuAD: lower case, no punctuation or articles, single spaces."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """Return 1 if the normalised answer equals a gold answer, else 0.

    Without gold answers, 1 if it is "" (SQuAD 2.0).
    """
    said = normalised(answer)
    return float(any(said == gold for gold in _golds(golds)))


def token_f1(answer: str, golds: Sequence[str]) -> float:
    """Return the best F1 over words, in [0, 1]; without golds, 1 for "" and else 0."""
    said = normalised(answer).split()
    return max(_f1_of_bags(said, gold.split()) for gold in _golds(golds))


def contains_gold(answer: str, golds: Sequence[str]) -> float:
    """Return 1 if a gold answer's words occur consecutively in the answer, else 0."""
    said = f" {normalised(answer)} "
    wanted = [gold for gold in _golds(golds) if gold]
    return float(any(f" {gold} " in said for gold in wanted))


def rouge_l(answer: str, golds: Sequence[str]) -> float:
    """Return the best ROUGE-L F1, in [0, 1]; 0 if either text has no word.

    It uses the longest common subsequence of lower-case ASCII words, without stemming,
    with the whole text as one sentence.
    """
    said = _words(answer)
    return max((_rouge_l(said, _words(gold)) for gold in golds), default=0.0)


def _golds(golds: Sequence[str]) -> list[str]:
    kept = [gold for gold in map(normalised, golds) if gold]
    return kept or [""]


def _f1_of_bags(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    return _f1(sum((Counter(said) & Counter(gold)).values()), len(said), len(gold))


def _rouge_l(said: list[str], gold: list[str]) -> float:
    if not said or not gold:
        return 0.0
    return _f1(_common_subsequence(said, gold), len(said), len(gold))


def _f1(common: int, said: int, gold: int) -> float:
    return 2 * common / (said + gold)


def _words(text: str) -> list[str]:
    return _NOT_ALPHANUMERIC.sub(" ", text.lower()).split()


def _common_subsequence(first: list[str], second: list[str]) -> int:
    row = [0] * (len(second) + 1)
    for word in first:
        diagonal = 0
        for column, other in enumerate(second, start=1):
            above = row[column]
            row[column] = diagonal + 1 if word == other else max(above, row[column - 1])
            diagonal = above
    return row[-1]
