"""What came of an import so far, as it is kept in its row."""

from collections.abc import Sequence

from kb.importing import BadRow
from kb.models import Import

from .values import Action, Decision

MOST_EXAMPLES = 5
MOST_BAD_ROWS = 100
_EXAMPLE_CHARACTERS = 300

COUNTS = ("read", *(action.value for action in Action))


def add(
    to: Import,
    *,
    read: int = 0,
    decisions: Sequence[Decision] = (),
    bad: Sequence[BadRow] = (),
) -> None:
    """Count decisions and bad rows into the import's row, with the first as examples.

    Args:
        read: Facts and bad rows that they came from.
    """
    counts: dict[str, int] = {**dict.fromkeys(COUNTS, 0), **to.counts}
    counts["read"] += read
    counts[Action.BAD] += len(bad)
    examples: dict[str, list[dict[str, str]]] = {**to.examples}
    for each in decisions:
        counts[each.action] += 1
        kept = examples.setdefault(each.action, [])
        if len(kept) < MOST_EXAMPLES:
            kept.append(_example(each))
    room = MOST_BAD_ROWS - len(to.bad_rows)
    to.bad_rows = [
        *to.bad_rows,
        *({"place": row.place, "reason": row.reason} for row in bad[: max(room, 0)]),
    ]
    to.counts, to.examples = counts, examples


def add_retired(to: Import, number: int, texts: Sequence[str]) -> None:
    """Count entries that the source no longer holds, the first texts as examples."""
    counts: dict[str, int] = to.counts
    to.counts = {**counts, Action.RETIRED: counts[Action.RETIRED] + number}
    kept = to.examples.get(Action.RETIRED, [])
    room = max(MOST_EXAMPLES - len(kept), 0)
    shown = [{"text": text[:_EXAMPLE_CHARACTERS]} for text in texts[:room]]
    to.examples = {**to.examples, Action.RETIRED: [*kept, *shown]}


def _example(decision: Decision) -> dict[str, str]:
    fact = decision.located.fact
    shown = {"place": fact.place, "text": fact.text[:_EXAMPLE_CHARACTERS]}
    if fact.question:
        shown["question"] = fact.question[:_EXAMPLE_CHARACTERS]
    if decision.action is Action.CHANGED and decision.known:
        shown["before"] = decision.known.text[:_EXAMPLE_CHARACTERS]
    return shown
