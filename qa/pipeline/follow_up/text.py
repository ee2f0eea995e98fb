"""A question with its tokens and noun phrases, found by word lists, without a tagger."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kb.text.terms import stem

from . import words

TOKEN = re.compile(r"[\u00a3$\u20ac]?\w+(?:[-'\u2019.,/&]\w+)*")


END = " \t\n?!.,;:\u2026"


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        # "US" and "IT" are names here, not pronouns.
        is_name = self.text in {"US", "IT"}
        return self.text if is_name else self.text.lower().replace("\u2019", "'")

    @property
    def is_name(self) -> bool:
        """Whether it is capitalised or a number."""
        return self.text[0].isupper() or self.is_number

    @property
    def is_number(self) -> bool:
        return self.text.lstrip("\u00a3$\u20ac")[:1].isdecimal()

    @property
    def is_content(self) -> bool:
        return self.lower not in words.FUNCTION


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: the tokens from `start` (its determiner, if any) up to `end`."""

    start: int
    core: int
    end: int
    preposition: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A standalone question.

    Attributes:
        form: Score of how well its form fits; higher is better.
    """

    text: str
    form: float


_ARTICLES: Final = words.DETERMINERS - {"this", "that", "these", "those"}


class Text:
    """A question with its tokens and noun phrases."""

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.tokens = [Token(m[0], *m.span()) for m in TOKEN.finditer(self.text)]
        self.phrases = list(self._phrases())

    def words(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def replaced(self, start: int, end: int, by: str) -> str:
        before = self.text[: self.tokens[start].start]
        return tidy(before + by + self.text[self.tokens[end - 1].end :])

    def lowers(self) -> list[str]:
        return [token.lower for token in self.tokens]

    def _phrases(self) -> Iterator[Phrase]:
        tokens, at = self.tokens, 0
        while at < len(tokens):
            if not tokens[at].is_content:
                at += 1
                continue
            start = at
            while (
                at < len(tokens)
                and tokens[at].is_content
                and (at == start or self._is_joined(at))
            ):
                at += 1
            if found := self._phrase(start, at):
                yield found

    def _is_joined(self, at: int) -> bool:
        return self.text[self.tokens[at - 1].end : self.tokens[at].start].isspace()

    def _phrase(self, start: int, end: int) -> Phrase | None:
        """Return the noun phrase among content words, without the verbs around it."""
        lowers = self.lowers()
        start = self._behind_verb(start, end)
        before = lowers[start - 1] if start else ""
        is_said = end == start + 1 and before in words.BE | {"have", "has", "had"}
        if is_said and lowers[start].endswith("ed"):
            return None
        if before in words.BE and set(lowers[start:end]) <= words.SAID_OF:
            return None
        end = self._before_verb(start, end)
        while start < end and lowers[start] in {"get", "getting", "have", "having"}:
            start += 1
        while 0 < start < end and lowers[start - 1] == "online":
            start -= 1  # "online check-in"
        if start >= end or (start == 0 and end < len(lowers) and end == 1):
            return None
        return self._with_determiner(start, end)

    def _behind_verb(self, start: int, end: int) -> int:
        """Return where a phrase starts: after a verb ("can I cancel membership")."""
        before = self.tokens[start - 1].lower if start else ""
        is_verb = before in words.PEOPLE | {"else"} or (
            before == "to" and self._is_infinitive(start)
        )
        return start + (is_verb and start < end)

    def _before_verb(self, start: int, end: int) -> int:
        """Return where a phrase ends: before "cost", "is ... allowed", "lost a book"."""
        lowers = self.lowers()
        if end < len(lowers) and lowers[end] in _ARTICLES and self._is_joined(end):
            end -= 1
        said = lowers[:start]
        if any(word in words.BEFORE_A_VERB for word in said):
            if said[-1] in words.BEFORE_A_VERB:  # "can children borrow"
                plurals = (at + 1 for at in range(start, end) if is_plural(lowers[at]))
                end = next(plurals, end)
            if end > start and lowers[end - 1] in words.LAST_VERBS:
                end -= 1
        if any(word in words.BE | {"have", "get"} for word in said):
            while end > start + 1 and (
                lowers[end - 1] in words.SAID_OF or lowers[end - 1].endswith("ed")
            ):
                end -= 1
        return end

    def _with_determiner(self, start: int, end: int) -> Phrase | None:
        lowers = self.lowers()
        first = start - (start > 0 and lowers[start - 1] in words.DETERMINERS)
        behind = lowers[first - 1] if first else ""
        preposition = behind if behind in words.PREPOSITIONS else ""
        if preposition == "than" and first > 1:
            preposition = f"{lowers[first - 2]} than"
        if preposition == "on" and lowers[start:end] == ["board"]:
            return None
        return Phrase(first, start, end, preposition)

    def _is_infinitive(self, at: int) -> bool:
        """Return whether "to" makes this word a verb: a noun would take no object."""
        following = self.lowers()[at + 1 : at + 2]
        is_name = self.tokens[at].text[0].isupper()
        return not is_name and (
            not following
            or following[0] in words.FUNCTION
            or self.tokens[at + 1].is_content
        )

    @property
    def is_question(self) -> bool:
        lowers = self.lowers()
        return bool(lowers) and lowers[0] in words.AUXILIARIES | words.QUESTION_WORDS


def sort(word: str) -> str:
    """Return a noun's sort, "time", "person" or "": one never replaces another."""
    for sort, known in (("time", words.TIMES), ("person", words.PERSONS)):
        if word in known or word.removesuffix("s") in known:
            return sort
    return ""


def is_ending(one: str, other: str) -> bool:
    if stem(one) == stem(other):
        return True
    shared = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        shared += 1
    return shared >= _COMPOUND and len(one) != len(other)


_COMPOUND: Final = 5  # least number of final letters that two German compounds share


def is_plural(word: str) -> bool:
    irregular = {"children", "people", "men", "women", "skis", "persons"}
    ending = word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return word in irregular or ending


def question(text: str) -> str:
    text = tidy(text).strip(END)
    return f"{text[:1].upper()}{text[1:]}?"


def with_article(text: str, behind: str) -> str:
    """Correct "a" or "an" directly before the words `behind`."""
    first = behind[:1].lower()
    right = "an" if first in "aeio" else "a"
    pattern = re.compile(rf"\b(an?)(\s+{re.escape(behind)})")
    return pattern.sub(lambda m: right + m[2], text)


def without_article(named: str) -> str:
    first, _, rest = named.partition(" ")
    return rest if rest and first.lower() in words.DETERMINERS else named


def tidy(text: str) -> str:
    return re.sub(r"\s+([?!.,;:])", r"\1", " ".join(text.split()))


def appended(before: Text, words_behind: str) -> str:
    text = before.text.strip(END)
    return f"{text} {words_behind}?"
