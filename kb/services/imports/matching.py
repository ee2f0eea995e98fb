"""Which entries of a document a new version of it reworded."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kb.importing import Fact
from kb.models import Document, Entry

LEAST_LIKENESS = 0.6
"""Share of words that two wordings of one fact have in common (Dice's coefficient)."""

MOST_COMPARISONS = 250_000
"""Beyond it nothing is paired: so different a document is a new one."""


def reworded(
    facts: Sequence[Fact], document: Document, audiences: frozenset[int] | None
) -> dict[str, int]:
    """Return entries by the keys of the facts that take their place.

    Facts that an entry already stands for pair with it by their key and are left out.
    The most alike pair first.

    Args:
        audiences: Whose entries may be touched; None for all.
    """
    keys = {fact.key for fact in facts}
    standing = Entry.objects.filter(document=document).exclude(source_key="")
    rows = standing.values_list(
        "source_key", "pk", "source_digest", "state", "audience_id"
    )
    known, gone = set(), []
    for key, pk, digest, state, audience in rows:
        known.add(key)
        is_mine = audiences is None or audience in audiences
        if key not in keys and digest and is_mine and state != Entry.State.RETIRED:
            gone.append(pk)
    new = {fact.key: fact for fact in facts if not fact.id and fact.key not in known}
    if not new or not gone or len(new) * len(gone) > MOST_COMPARISONS:
        return {}
    texts = Entry.objects.filter(pk__in=gone).values_list("pk", "question", "text")
    return pair(
        {pk: f"{question} {text}" for pk, question, text in texts},
        {key: f"{fact.question} {fact.text}" for key, fact in new.items()},
    )


def pair(old: Mapping[int, str], new: Mapping[str, str]) -> dict[str, int]:
    """Return the old text that each new one rewords, each at most once.

    Args:
        old: Texts by entry.
        new: Texts by key.
    """
    words = {pk: Counter(text.lower().split()) for pk, text in old.items()}
    candidates = []
    for key, text in new.items():
        mine = Counter(text.lower().split())
        for pk, theirs in words.items():
            likeness = 2 * (mine & theirs).total() / (mine.total() + theirs.total())
            if likeness >= LEAST_LIKENESS:
                candidates.append((-likeness, pk, key))
    pairs: dict[str, int] = {}
    taken: set[int] = set()
    for _, pk, key in sorted(candidates):
        if pk not in taken and key not in pairs:
            pairs[key] = pk
            taken.add(pk)
    return pairs
