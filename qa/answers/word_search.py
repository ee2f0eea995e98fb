"""Searching answers by words, fast even if a million of them match."""

import re
from typing import TYPE_CHECKING, Final

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.search import SearchQuery, SearchVector, SearchVectorExact
from django.db.models import BooleanField, F, Func, Q

from accounts.people import people_named

if TYPE_CHECKING:
    from qa.answers.models import AnswerQuerySet

_WORD: Final = re.compile(r"\w+")
_PROBED: Final = 1_000
_USUAL: Final = range(5, 200)
"""Hits among the newest `_PROBED` answers for which PostgreSQL estimates well."""
_MAX_NAMED: Final = 50


def words_of(field: str) -> SearchVector:
    """Return the unstemmed search vector of a field; questions are in any language."""
    return SearchVector(field, config="simple")


def has_words(
    answers: "AnswerQuerySet", words: str, *, of: str = "", in_text: bool = False
) -> Q:
    """Return the condition that a question has words with these beginnings, in any order.

    The word index is fast if few rows match, reading rows in the list's order if many
    do. PostgreSQL assumes 2 % for each beginning of a word, and with a million answers
    took ten seconds if none matched; so the newest answers are probed first.

    Args:
        answers: The answers to search.
        words: If it contains no word, no row is found.
        of: The filtered rows' field for their answer; "" if they are answers.
        in_text: Search the answer's text, too.
    """
    begun = [f"{word}:*" for word in _WORD.findall(words)]
    if not begun:
        return Q(pk__in=[])
    query = SearchQuery(" & ".join(begun), config="simple", search_type="raw")

    def found(prefix: str = "", *, by_row: bool = False) -> Q:
        either = Q()
        for field in ["question", "text"] if in_text else ["question"]:
            has = SearchVectorExact(words_of(prefix + field), query)
            either |= Q(_NotByIndex(has) if by_row else has)
        return either

    probed = answers.annotate(hit=found(by_row=True)).order_by("-created_at")
    hits = sum(probed.values_list("hit", flat=True)[:_PROBED])
    if hits < _USUAL.start:
        ids = ArraySubquery(answers.filter(found()).values("pk"))
        return Q(_IsOneOf(F(of or "pk"), ids))
    if of:  # a join, for which PostgreSQL would read all answers after a wrong estimate
        return found(f"{of}__", by_row=True)
    return found(by_row=hits >= _USUAL.stop)


def users_named(part: str) -> list[int]:
    """Return the ids of at most 50 users with a name that contains `part`."""
    return list(people_named(part).values_list("pk", flat=True)[:_MAX_NAMED])


class _NotByIndex(Func):
    template = "(%(expressions)s) IS TRUE"
    output_field = BooleanField()


class _IsOneOf(Func):
    """`= ANY(array)`: evaluated first and by the index, which a join need not be."""

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()
