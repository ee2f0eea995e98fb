"""Texts that differ in one word of the instruction, to fit directions on.

The model's chat template attributes one statement to, for example, an honest and an
untruthful person. The statement is cut off after some of its tokens, so that the last
token varies. A seed decides which statements are used and where they are cut, because
the first rows of a file share a topic.

References:
    Liu et al., "CtrlA: adaptive retrieval-augmented generation via inherent control"
    (2024), prompt 3.1; its release cuts every statement at every token but the last
    five.
"""

import csv
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from probes.exceptions import StatementFileError
from probes.language_model.tokens import Tokens, Turn

OWN_STATEMENTS: Final = Path(__file__).parent / "statements.jsonl"
# The last tokens of a statement reflect its end, no matter who says it.
_LAST_TOKENS_LEFT_OUT: Final = 5
_INSTRUCTION: Final = "Pretend you are {} person making statements about the world."


class Trait(StrEnum):
    HONESTY = "honesty"
    CONFIDENCE = "confidence"


_ROLES: Final[Mapping[Trait, tuple[str, str]]] = {
    Trait.HONESTY: ("an honest", "an untruthful"),
    Trait.CONFIDENCE: ("a confident", "an unconfident"),
}


@dataclass(frozen=True, slots=True)
class Contrast:
    positive: tuple[int, ...]
    negative: tuple[int, ...]


def draw_contrasts(
    tokens: Tokens, statements: Sequence[str], trait: Trait, *, count: int, seed: int
) -> list[Contrast]:
    """Return `count` seeded pairs of statement and cut, or all if there are fewer."""
    heads = [
        tokens.encode_chat([Turn("user", _INSTRUCTION.format(role))], open_answer=True)
        for role in _ROLES[trait]
    ]
    said = [tokens.encode_text(statement) for statement in statements]
    cuts = [
        (number, length)
        for number, ids in enumerate(said)
        for length in range(1, max(2, len(ids) - _LAST_TOKENS_LEFT_OUT + 1))
    ]
    drawn = random.Random(seed).sample(cuts, min(count, len(cuts)))  # noqa: S311  # no secret
    return [
        Contrast(*((*head, *said[number][:length]) for head in heads))
        for number, length in drawn
    ]


def read_true_statements(*files: Path) -> list[str]:
    """Return the true statements of CSV files with the columns statement and label.

    References:
        Azaria and Mitchell, "The internal state of an LLM knows when it's lying" (2023).
    """
    found: dict[str, None] = {}
    for file in files:
        try:
            with file.open(encoding="utf-8-sig", newline="") as stream:
                rows = [
                    row["statement"].strip()
                    for row in csv.DictReader(stream)
                    if row["label"].strip() == "1"
                ]
        except (OSError, ValueError, KeyError, AttributeError, csv.Error) as error:
            raise _unreadable(file, "the columns statement and label") from error
        if not rows:
            raise _unreadable(file, "a statement whose label is 1")
        found |= dict.fromkeys(filter(None, rows))
    return list(found)


def read_confident_statements(
    file: Path = OWN_STATEMENTS,
) -> tuple[list[str], list[str]]:
    """Return confident and unconfident statements; row i of both has the same topic."""
    try:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        pairs = [(str(row["confident"]), str(row["unconfident"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = "a confident and an unconfident statement per line"
        raise _unreadable(file, what) from error
    return [one for one, _ in pairs], [other for _, other in pairs]


def _unreadable(file: Path, wanted: str) -> StatementFileError:
    return StatementFileError(f"{file} can't be used: it needs {wanted}.")
