"""Exports of chatbots: what people ask, in several wordings, and the reply.

Dialogflow calls an intent's wordings `trainingPhrases` or `userSays`, Amazon Lex
`sampleUtterances`, Azure's question answering `questions`, and the `intents.json` of many
tutorials `patterns`; replies are `messages`, `responses` or an `answer`. The first
wording is the question; as many of the rest as an entry may have are other wordings.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kb.text.cleaning import MAX_WORDINGS

from .header import plain, spoken

_PHRASES: Final = frozenset(
    {
        "training phrases", "user says", "sample utterances", "utterances", "patterns",
        "phrases", "questions", "examples",
    }
)  # fmt: skip
_REPLIES: Final = (
    "messages", "responses", "answers", "replies", "response", "answer", "reply",
    "conclusion statement", "fulfillment messages",
)  # fmt: skip
# Keys under which a phrase or a reply that is an object holds its text.
_HELD: Final = (
    "text", "speech", "utterance", "content", "value", "messages", "message", "rendered",
)  # fmt: skip
_PARTS: Final = ("parts", "data")  # of a phrase, some of them for parameters
_KEYS: Final = ("id", "name", "tag", "intent")
_SECTIONS: Final = (
    "displayName",
    "display_name",
    "title",
    "topic",
    "category",
    "label",
)
_DEEPEST: Final = 50

Intent = tuple[tuple[str, ...], object]
"""The sections an intent is in, outermost first, and its question and answer."""


def intents_in(parsed: object) -> Iterator[Intent]:
    """Yield the intents anywhere in parsed JSON; none if it holds other objects."""
    yield from _walked(parsed, (), 0)


def _walked(parsed: object, path: tuple[str, ...], depth: int) -> Iterator[Intent]:
    if depth > _DEEPEST:
        return
    if isinstance(parsed, list):
        for each in parsed:
            yield from _walked(each, path, depth + 1)
    elif isinstance(parsed, dict):
        if intent := _intent(parsed):
            yield path, intent
        named = (parsed.get(name) for name in _SECTIONS)
        title = next((each for each in named if isinstance(each, str)), "")
        # An intent's own title is not a section of what is nested in it.
        below = path if intent or not title else (*path, title)
        for each in parsed.values():
            yield from _walked(each, below, depth + 1)


def _intent(parsed: Mapping[str, object]) -> dict[str, object]:
    """Return an object's question, wordings and answer; empty if it is no intent."""
    by_name = {plain(spoken(name)).lower(): value for name, value in parsed.items()}
    listed = (by_name.get(name) for name in _PHRASES)
    phrases = next((each for each in listed if isinstance(each, list)), [])
    asked = [*dict.fromkeys(filter(None, map(_phrase, phrases)))]
    replied = (_reply(by_name[name]) for name in _REPLIES if name in by_name)
    answer = next(filter(None, replied), "")
    if not (asked and answer) or "question" in by_name:
        return {}
    keys = (parsed.get(name) for name in _KEYS)
    key = next((each for each in keys if each and isinstance(each, str | int)), "")
    others = asked[1 : MAX_WORDINGS + 1]
    found: dict[str, object] = {
        "question": asked[0],
        "also_asked": others,
        "answer": answer,
    }
    return found | ({"id": str(key)} if key else {})


def _phrase(said: object) -> str:
    """Return one wording, with its parts joined."""
    if isinstance(said, dict):
        parts = (said[name] for name in _PARTS if isinstance(said.get(name), list))
        if (found := next(parts, None)) is not None:
            return "".join(map(_text, found)).strip()
    return _text(said).strip()


def _text(said: object) -> str:
    if isinstance(said, dict):
        said = next((said[name] for name in _HELD if name in said), "")
    return said if isinstance(said, str) else ""


def _reply(said: object) -> str:
    """Return the reply: the longest of alternatives, or all of several messages."""
    if isinstance(said, str):
        return said.strip()
    if isinstance(said, dict):
        return next(filter(None, (_reply(said[n]) for n in _HELD if n in said)), "")
    if not isinstance(said, list):
        return ""
    if all(isinstance(each, str) for each in said):
        return max(said, key=len, default="").strip()
    return "\n\n".join(dict.fromkeys(filter(None, map(_reply, said))))
