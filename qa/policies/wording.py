"""The words of each reason for a refusal: to its asker, on pages, and what to do next."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qa.pipeline.gates import Reason

_WORDS: Final[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """What pages say of a reason; and what its asker reads, by language."""

    title: str
    why: str
    next_steps: tuple[str, ...]
    asker: Mapping[str, str]


REASONS: Final = {
    reason: ReasonWords(
        words["title"],
        words["why"],
        tuple(_WORDS["steps"].get(step, step) for step in words["next"]),
        words["asker"],
    )
    for reason in Reason
    if (words := _WORDS["reasons"][reason.value])
}


def refusal_text(
    reason: Reason,
    *languages: str,
    overrides: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Return what is shown for `reason` in the first of `languages` (two letters).

    Args:
        languages: The further ones count where the knowledge base has words of its own in
            them and none in the first. One without texts of its own is answered in English.
        overrides: The knowledge base's own texts by (language, reason); the reason ""
            covers every reason without one.
    """
    own = overrides or {}
    for language in languages:
        for key in ((language, reason.value), (language, "")):
            if key in own:
                return own[key]
    texts = REASONS[reason].asker
    return texts.get(languages[0], texts["en"])
