"""Follow-ups that refer back by a pronoun, a bare question word or a condition."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from kb.text.terms import stem

from . import words
from .text import (
    END,
    Phrase,
    Reading,
    Text,
    appended,
    is_plural,
    question,
    sort,
    tidy,
    without_article,
)


def asked_of(body: Text, before: Text) -> Iterator[Reading]:
    """Yield the full question for a bare question word, such as "when?"."""
    first = before.lowers()[0]
    lead = body.text[0].upper() + body.text[1:]
    lowers = body.lowers()
    doing = _doing(before)
    if "long" in lowers or "lange" in lowers:
        if doing:
            yield Reading(f"How long does it take to {doing}?", 4.0)
    elif "much" in lowers:
        if doing:
            yield Reading(f"How much does it cost to {doing}?", 4.0)
    elif first in words.AUXILIARIES:
        text = before.text
        yield Reading(tidy(f"{lead} {text[0].lower()}{text[1:]}"), 4.0)
    elif first in words.QUESTION_WORDS and lowers[0] in {"where", "when", "wo", "wann"}:
        end = _question_words_end(before)
        if end < len(before.tokens) and before.tokens[end].lower in words.AUXILIARIES:
            yield Reading(tidy(lead + before.text[before.tokens[end].start - 1 :]), 4.0)


def _question_words_end(before: Text) -> int:
    lowers, end = before.lowers(), 0
    while end < len(lowers) and lowers[end] in words.QUESTION_WORDS | words.GRADES:
        end += 1
    return end


_ASKERS: Final = frozenset({"i", "we", "you", "one"})


def _doing(before: Text) -> str:
    """Return the action asked about: "VERB ..." of "How do I VERB ..."."""
    lowers = before.lowers()
    for at in range(len(lowers) - 2):
        is_asked = lowers[at] in words.BEFORE_A_VERB and lowers[at + 1] in _ASKERS
        if is_asked and before.tokens[at + 2].is_content:
            return before.text[before.tokens[at + 2].start :].strip(END)
    return ""


def conditioned(body: Text, before: Text) -> Iterator[Reading]:
    """Yield the earlier question with this condition added, or in place of its own."""
    lowers = before.lowers()
    own = [at for at, word in enumerate(lowers) if word in words.SUBORDINATORS and at]
    first, _, asked = before.text.rpartition(". ")
    if first and asked.endswith("?") and not own:
        condition = body.text
        if (at := pronoun(body)) is not None:
            named = next(iter(Text(first).phrases), None)
            if named:
                text = Text(first).words(named.start, named.end)
                condition = body.replaced(at, at + 1, f"{text[0].lower()}{text[1:]}")
        yield Reading(f"{asked.strip(END)} {condition}?", 4.0)
    elif own:
        text = before.text[: before.tokens[own[-1]].start].strip(END)
        yield Reading(f"{text} {body.text}?", 4.0)
    elif before.is_question or before.text.endswith("?"):
        yield Reading(appended(before, body.text), 4.0)


def is_condition(lowers: Sequence[str]) -> bool:
    is_begun = len(lowers) > 1 and lowers[0] in words.SUBORDINATORS
    return is_begun and lowers[1] not in words.AUXILIARIES


def is_bare(lowers: Sequence[str]) -> bool:
    """Return whether it is only a question word: "why", "how long", "until when"."""
    allowed = words.QUESTION_WORDS | words.GRADES | words.PREPOSITIONS
    return (
        len(lowers) <= 3
        and any(word in words.QUESTION_WORDS for word in lowers)
        and all(word in allowed for word in lowers)
    )


def pronoun(body: Text) -> int | None:
    """Return the index of a pronoun that refers to something in the earlier question.

    A pronoun after a noun phrase may refer to that phrase, and the "it" of "is it
    possible to ..." refers to nothing.
    """
    lowers = body.lowers()
    for at, word in enumerate(lowers):
        if _names_something(body, at):
            return None
        following = lowers[at + 1] if at + 1 < len(lowers) else ""
        if word in words.POSSESSIVE and following and body.tokens[at + 1].is_content:
            return at
        if word == "it" or word in {"they", "them"}:
            if word == "it" and _is_empty(lowers, at):
                continue
            return at
        is_kind = word in {"one", "ones"} and at > 0
        if (
            is_kind
            and (not following or following in words.FUNCTION)
            and (lowers[at - 1] in words.DETERMINERS or body.tokens[at - 1].is_content)
        ):
            return at
        if word == "that" and (
            not following
            or following in words.FUNCTION
            or following in words.LAST_VERBS
        ):
            joined = words.PEOPLE | words.DETERMINERS | words.PLURAL | {"it", "there"}
            is_relative = at > 0 and body.tokens[at - 1].is_content and following
            if following not in joined and not is_relative:
                return at
    return None


def _names_something(body: Text, at: int) -> bool:
    """Return whether a name or a noun phrase with a determiner precedes this index."""
    return any(
        phrase.end <= at - (body.tokens[at].lower in {"one", "ones"})
        and body.tokens[phrase.end - 1].lower not in words.THIN
        and (
            phrase.start < phrase.core
            or any(t.is_name for t in body.tokens[max(phrase.core, 1) : phrase.end])
            or phrase.preposition
        )
        for phrase in body.phrases
    )


def _is_empty(lowers: Sequence[str], at: int) -> bool:
    """Return whether "it" stands for what follows, as in "does it cost to join"."""
    behind = lowers[at + 1 :]
    joins = {"to", "that", "if", "when", "until", "before", "for"}
    return any(word in joins for word in behind[1:4]) and not (
        "for" in behind and "to" not in behind
    )


def referring(body: Text, before: Text, at: int) -> Iterator[Reading]:
    """Yield the question with the pronoun at `at` replaced by what it may refer to."""
    lowers = body.lowers()
    word = lowers[at]
    if word in {"one", "ones"}:
        yield from _of_that_kind(body, before, at)
        return
    if word in words.SINGULAR:
        if at and lowers[at - 1] == "do":
            return  # "do it" refers to an action, not to a thing
        if _may_be_doing(lowers, at):
            doing = _doing(before)
            somebody = words.PEOPLE | {"else"}
            if not doing and any(one in somebody for one in before.lowers()):
                return  # someone else's action, which has no short name
            if doing:
                yield _of_doing(body, at, doing)
    for place, phrase in enumerate([*_with_of(before), *before.phrases]):
        fit = _fit(phrase, before, lowers, at)
        if fit:
            named = before.words(phrase.start, phrase.end)
            is_many = is_plural(before.tokens[phrase.end - 1].lower)
            text = _named(body, at, named, is_many=is_many)
            yield Reading(text, fit - 0.1 * place)


def _may_be_doing(lowers: Sequence[str], at: int) -> bool:
    """Return whether a pronoun may refer to an action: "what does it cost?"."""
    following = lowers[at + 1] if at + 1 < len(lowers) else ""
    behind = lowers[at - 1] if at else ""
    is_priced = following in {"take", "cost"} or behind in {"for", *words.BE}
    return is_priced and (
        not following or following in {"take", "cost"} | words.OF_DOING
    )


def _of_doing(body: Text, at: int, doing: str) -> Reading:
    if at and body.tokens[at - 1].lower == "for":
        lead = body.text[: body.tokens[at - 1].start].strip()
        return Reading(question(f"{lead} to {doing}"), 4.5)
    return Reading(question(f"{body.replaced(at, at + 1, 'it')} to {doing}"), 4.2)


def _fit(phrase: Phrase, before: Text, lowers: Sequence[str], at: int) -> float:
    """Return how well a pronoun fits a phrase; 0 if it does not."""
    word, following = lowers[at], lowers[at + 1] if at + 1 < len(lowers) else ""
    head = before.tokens[phrase.end - 1].lower
    is_person = sort(head) == "person"
    wants_many = word in words.PLURAL | {"their"}
    fits = is_plural(head) == wants_many
    is_counted = list(lowers[max(at - 2, 0) : at]) == ["many", "of"]
    is_office = word == "they" and following in words.OF_OFFICES and not is_person
    is_thing = word in words.SINGULAR and is_person
    is_other = wants_many and not (fits or is_person or is_counted)
    if is_office or is_thing or is_other or not _is_certain(phrase, before):
        return 0.0
    return 4.0 if fits else 3.5


_VERB_STEMS: Final = frozenset(map(stem, words.LAST_VERBS | words.OF_OFFICES))


def _is_certain(phrase: Phrase, before: Text) -> bool:
    """Return whether its determiner, name, plural or length proves a noun phrase."""
    last = before.tokens[phrase.end - 1]
    if last.lower.endswith(("ing", "ed", "ly")) and phrase.end == phrase.core + 1:
        return False
    has_name = any(t.is_name for t in before.tokens[max(phrase.core, 1) : phrase.end])
    is_many = is_plural(last.lower)
    is_long = phrase.end > phrase.core + 1
    if stem(last.lower) in _VERB_STEMS and not is_long and phrase.start == phrase.core:
        return False
    return phrase.start < phrase.core or has_name or is_many or is_long


def _of_that_kind(body: Text, before: Text, at: int) -> Iterator[Reading]:
    """Yield "How do I get a new SIM card?" for "how do I get a new one?"."""
    is_many = body.lowers()[at] == "ones"
    for place, phrase in enumerate(before.phrases):
        if is_plural(before.tokens[phrase.end - 1].lower) == is_many:
            core = before.words(phrase.core, phrase.end)
            text = body.replaced(at, at + 1, core)
            yield Reading(question(text), 4.0 - 0.1 * place)


def _named(body: Text, at: int, named: str, *, is_many: bool) -> str:
    """Return a question with its pronoun replaced by what it refers to."""
    lowers = body.lowers()
    if lowers[at] in words.POSSESSIVE:
        named += "'" if is_many else "'s"
    if at >= 2 and lowers[at - 1] == "of" and lowers[at - 2] in words.GRADES:
        bare = without_article(named)
        many = bare if is_many else f"{bare}s"
        return question(body.replaced(at - 1, at + 1, many))
    text = body.replaced(at, at + 1, named)
    return question(text)


def _with_of(before: Text) -> list[Phrase]:
    """Return each noun phrase together with the "of" phrase that follows it."""
    return [
        replace(one, end=other.end)
        for one, other in zip(before.phrases, before.phrases[1:], strict=False)
        if other.preposition == "of" and other.start == one.end + 1
    ]


def is_thin(body: Text) -> bool:
    """Return whether a question names no subject of its own: "How long do I have?"."""
    content = [t.lower for t in body.tokens if t.is_content]
    return all(word in words.THIN for word in content) and not any(
        word in words.PREPOSITIONS for word in body.lowers()
    )


def about_the_same(body: Text, before: Text) -> Iterator[Reading]:
    """Yield a complete question followed by the action that the earlier one names."""
    if not body.is_question or not is_thin(body):
        return
    if doing := _doing(before):
        yield Reading(question(f"{body.text} to {doing}"), 4.0)
