"""The wording of refusals by language, from `wording.LANGUAGE.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qa.pipeline.gates import Reason

_ENGLISH: Final = "en"  # for pages, and for refusals in a language without a file

# Next steps, by their names in the files.
_NEXT_STEPS: Final[Mapping[Reason, tuple[str, ...]]] = {
    Reason.NOTHING_KNOWN: ("ask_a_colleague", "report"),
    Reason.TOO_FAR: ("look_at_the_entries", "rephrase", "report"),
    Reason.UNVERIFIED_ONLY: ("do_not_pass_on", "have_it_verified"),
    Reason.EXPIRED_ONLY: ("do_not_use", "have_it_renewed"),
    Reason.NOT_ENTITLED: ("hand_over",),
    Reason.NOT_ANSWERED: ("one_may_answer", "rephrase", "report"),
    Reason.MODEL_DECLINED: ("read_the_entries", "rephrase", "report"),
    Reason.MALFORMED_OUTPUT: ("read_the_entries", "ask_again"),
    Reason.UNSUPPORTED: ("read_the_entries", "ask_a_colleague", "report"),
    Reason.LOW_CONFIDENCE: ("read_the_entries", "ask_a_colleague", "report"),
    Reason.NO_PROBE: ("tell_the_administrator", "read_the_entries"),
    Reason.SOURCES_DISAGREE: ("read_both", "ask_which_is_right", "conflict_is_listed"),
    Reason.POLICY_STALE: ("tell_the_administrator", "ask_a_colleague"),
}


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """The wording of a reason; `asker` is what the asker reads first.

    `reader` is for readers without an expert to ask; "" if it is the same.
    """

    title: str
    why: str
    asker: str
    next_steps: tuple[str, ...]
    reader: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """The wordings of refusals in one language (two letters)."""

    language: str
    reasons: Mapping[Reason, ReasonWords]
    labels: Mapping[str, str]

    def for_reader(self, reason: Reason | None, text: str) -> str:
        """Return a refusal's text for a reader who has no expert to ask.

        The knowledge base's own wordings stay as they are, and so does an answer.
        """
        if reason and text == self.reasons[reason].asker:
            return self.reasons[reason].reader or text
        return text


def _load(path: Path) -> Words:
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    labels = texts["labels"]
    steps = {name: step.format(**labels) for name, step in texts["steps"].items()}
    reasons = {
        reason: ReasonWords(
            **texts["reasons"][reason.value],
            next_steps=tuple(steps[name] for name in names),
        )
        for reason, names in _NEXT_STEPS.items()
    }
    return Words(path.suffixes[0][1:], reasons, labels)


WORDS: Final[Mapping[str, Words]] = {
    words.language: words
    for words in map(_load, sorted(Path(__file__).parent.glob("wording.*.toml")))
}
REASONS: Final = WORDS[_ENGLISH].reasons
"""Reasons as pages for experts name them."""


def words_in(language: str) -> Words:
    """Return the wordings in `language`, or in English if there are none."""
    return WORDS.get(language, WORDS[_ENGLISH])


def words_around(*, language: str, is_refused: bool) -> Words:
    """Return the wordings around a refusal in its language, else those in English."""
    return words_in(language if is_refused else _ENGLISH)


def refusal_text(
    reason: Reason,
    *languages: str,
    overrides: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Return what is shown for `reason` in the first of `languages` (two letters).

    Args:
        languages: The others count only if the knowledge base has its own texts in them
            and none in the first. A first language without built-in texts falls back to
            English.
        overrides: The knowledge base's own texts by (language, reason); the reason ""
            covers every reason without one.
    """
    own = overrides or {}
    for language in languages:
        for key in ((language, reason.value), (language, "")):
            if key in own:
                return own[key]
    return words_in(languages[0]).reasons[reason].asker
