"""Follow-ups without a verb: "and for the Business card?", "by phone?"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from . import words
from .text import (
    Phrase,
    Reading,
    Text,
    Token,
    appended,
    is_ending,
    is_plural,
    question,
    sort,
    with_article,
)


@dataclass(frozen=True, slots=True)
class _New:
    """The parts of a fragment.

    Attributes:
        core: Its words without preposition and determiner.
    """

    preposition: str
    determiner: str
    core: str
    tokens: tuple[Token, ...]
    is_kind: bool  # "the Business one"

    @property
    def head(self) -> str:
        head = self.tokens[0].lower
        for token in self.tokens:
            if not token.is_content:
                break
            head = token.lower
        return head

    @property
    def is_name(self) -> bool:
        return self.tokens[0].is_name

    def phrase(self) -> str:
        return " ".join(filter(None, (self.determiner, self.core)))


def _new(body: Text) -> _New | None:
    tokens = list(body.tokens)
    preposition = determiner = ""
    lowers = body.lowers()
    if len(tokens) > 2 and lowers[0] in words.COMPARISONS and lowers[1] == "than":
        preposition = f"{lowers[0]} than"
        tokens = tokens[2:]
    elif len(tokens) > 1 and lowers[0] in words.PREPOSITIONS:
        preposition = tokens.pop(0).text.lower()
    if len(tokens) > 1 and tokens[0].lower in words.DETERMINERS:
        determiner = tokens.pop(0).text.lower()
    is_kind = len(tokens) > 1 and tokens[-1].lower in {"one", "ones"}
    if is_kind:
        tokens.pop()
    if not tokens[0].is_content:
        return None
    core = body.text[tokens[0].start : tokens[-1].end]
    return _New(preposition, determiner, core, tuple(tokens), is_kind)


def substituted(body: Text, before: Text) -> Iterator[Reading]:
    lowers = body.lowers()
    if all(word in words.ADVERBS | words.CHANNELS for word in lowers):
        yield Reading(appended(before, body.text), 4.0)
    if lowers[0] in words.CHANNELS | {"by", "per", "in"}:
        for at, token in enumerate(before.tokens):
            if token.lower in words.CHANNELS:
                yield Reading(before.replaced(at, at + 1, body.text), 4.5)
    if lowers[0] == "to" and len(lowers) > 1 and body.tokens[1].is_content:
        yield from _infinitive(body, before)
    new = _new(body)
    if new is None:
        return
    last = len(before.phrases) - 1
    for at, phrase in enumerate(before.phrases):
        nearness = 0.1 * at / max(last, 1)
        for each in _in_place_of(phrase, new, before):
            yield replace(
                each, form=each.form + nearness + _likeness(phrase, new, before)
            )
    if new.preposition:
        is_there = any(each.preposition == new.preposition for each in before.phrases)
        text = appended(before, f"{new.preposition} {new.phrase()}")
        yield Reading(text, 2.5 if is_there else 3.5)


def _likeness(phrase: Phrase, new: _New, before: Text) -> float:
    """Score how alike two phrases are in determiner, kind and number: -0.3 to 0.8."""
    own = before.tokens[phrase.start].lower if phrase.start < phrase.core else ""
    if own and new.determiner:
        return 0.6 if _determines(own) == _determines(new.determiner) else 0.3
    if own or new.determiner:
        return -0.3
    last = before.tokens[phrase.end - 1].lower
    if {sort(last), sort(new.head)} in ({"person"}, {"time"}):
        return 0.8
    return 0.6 if is_plural(last) and is_plural(new.head) else 0.0


def _determines(word: str) -> str:
    return "a" if word in {"a", "an"} else "own" if word in words.OWN else word


def _infinitive(body: Text, before: Text) -> Iterator[Reading]:
    """Yield the question with another infinitive: "and to close my account?"."""
    lowers = before.lowers()
    places = [
        at
        for at in range(1, len(lowers) - 1)
        if lowers[at] == "to" and before.tokens[at + 1].is_content
    ]
    if places:
        text = before.text[: before.tokens[places[0]].start]
        yield Reading(question(text + body.text), 6.0)


def _in_place_of(phrase: Phrase, new: _New, before: Text) -> Iterator[Reading]:
    """Yield the question with `new` in place of `phrase` or of its qualifier."""
    tokens = before.tokens[phrase.core : phrase.end]
    if _alike_heads(new, tokens):
        if phrase.preposition == "of":  # here "for the Business card" means "of" it
            new = replace(new, preposition="")
        is_same = [t.lower for t in tokens] == [t.lower for t in new.tokens]
        prepositions = new.preposition, phrase.preposition
        if not is_same or (all(prepositions) and _alike_prepositions(*prepositions)):
            yield Reading(_put(phrase, new, before), 5.0)
        return
    yield from _qualified(phrase, new, before)
    if new.is_kind:
        return
    is_name = all(token.is_name for token in tokens) and phrase.core > 0
    if new.is_name and is_name:
        yield Reading(_put(phrase, new, before), 4.2)
    elif new.preposition and phrase.preposition:
        same = new.preposition == phrase.preposition
        if sort(new.head) != sort(tokens[-1].lower):
            text = appended(before, f"{new.preposition} {new.phrase()}")
            yield Reading(text, 4.0)
        elif same or _alike_prepositions(new.preposition, phrase.preposition):
            own = replace(new, preposition="") if same else new
            yield Reading(_put(phrase, own, before), 4.0 if same else 3.3)
    elif not new.preposition:
        is_aside = phrase.preposition not in {"", "of", "for"}
        yield Reading(_put(phrase, new, before), 2.3 if is_aside else 3.0)


def _qualified(phrase: Phrase, new: _New, before: Text) -> Iterator[Reading]:
    """Yield the question with another qualifier: "the Business one", "and Business?"."""
    tokens = before.tokens[phrase.core : phrase.end]
    begin = max(phrase.core, 1)
    names = [at for at in range(begin, phrase.end - 1) if before.tokens[at].is_name]
    is_name = all(token.is_name for token in tokens) and phrase.core > 0
    if not new.is_kind and not (new.is_name and names and not is_name):
        return
    by_name = new.is_name and names
    first = names[0] if by_name else phrase.core
    end = names[-1] + 1 if by_name else phrase.end - 1
    if end > first:
        text = before.replaced(first, end, new.core)
    else:
        text = before.replaced(first, first + 1, f"{new.core} {tokens[0].text}")
    yield Reading(with_article(text, new.core), 4.5)


def _end_of(phrase: Phrase, new: _New, before: Text) -> int:
    """Return where a phrase ends, including a qualifier if the new one has one."""
    own = [t.lower for t in new.tokens if t.lower in words.PREPOSITIONS]
    for other in before.phrases:
        is_next = other.start == phrase.end + 1 and other.preposition
        if is_next and own and _alike_prepositions(own[0], other.preposition):
            return other.end
    return phrase.end


def _put(phrase: Phrase, new: _New, before: Text) -> str:
    """Replace a phrase, keeping its determiner and preposition where possible."""
    own = before.tokens[phrase.start].lower
    is_many = own in {"a", "an"} and not new.determiner and is_plural(new.head)
    is_own = (
        new.determiner in words.OWN
        or is_many
        or (new.determiner and phrase.start == phrase.core)
    )
    first = phrase.start if is_own else phrase.core
    by = new.phrase() if is_own else new.core
    if new.preposition and phrase.preposition and new.preposition != phrase.preposition:
        first = phrase.start - len(phrase.preposition.split())
        by = f"{new.preposition} {new.phrase()}"
    text = before.replaced(first, _end_of(phrase, new, before), by)
    return with_article(text, by)


def _alike_heads(new: _New, tokens: Sequence[Token]) -> bool:
    """Return whether two phrases name kinds of one thing: "Gold card", "ski card"."""
    one, other = new.head, tokens[-1].lower
    if tokens[-1].is_number and new.tokens[-1].is_number:
        ours = [t.lower for t in new.tokens if not t.is_number]
        theirs = [t.lower for t in tokens if not t.is_number]
        return ours == theirs
    return any(
        is_ending(part_one, part_other)
        for part_one in (one, one.rpartition("-")[2])
        for part_other in (other, other.rpartition("-")[2])
    )


def _alike_prepositions(one: str, other: str) -> bool:
    if one.endswith(" than") and other.endswith(" than"):
        return True
    return any(one in kind and other in kind for kind in words.KINDS)


def same_verb(body: Text, before: Text) -> Iterator[Reading]:
    """Yield "Can I deregister?" for "and deregister?" after "Can I register?"."""
    tokens = before.tokens
    if len(body.tokens) != 1:
        return
    own = body.tokens[0]
    for at in range(1, len(tokens)):
        if tokens[at - 1].lower in words.PEOPLE and tokens[at].is_content:
            is_form = is_ending(own.lower, tokens[at].lower)
            yield Reading(
                before.replaced(at, at + 1, own.text), 4.0 if is_form else 2.0
            )
