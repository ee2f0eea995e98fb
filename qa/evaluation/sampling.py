"""Choosing some of many labelled questions: seeded, and fair to every stratum."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from .cases import Case


def in_seeded_order(cases: Iterable[Case], seed: int) -> list[Case]:
    """Return the cases in an order that depends on their ids and the seed alone."""
    return sorted(cases, key=lambda case: _place(case.id, seed))


def sample(cases: Sequence[Case], limit: int | None, *, seed: int) -> tuple[Case, ...]:
    """Return `limit` of the cases in a seeded order; all of them where it is None.

    What is to be answered and what is to be refused have their share of it, and within
    each of the two every group has its own: a group of one case, which has no share to
    speak of, takes its turn with the others of its kind.
    """
    ordered = in_seeded_order(cases, seed)
    if limit is None or limit >= len(ordered):
        return tuple(ordered)
    chosen: set[str] = set()
    kinds = _strata(ordered, lambda case: case.is_answerable)
    for kind, places in _places(kinds, limit).items():
        groups = _strata(kinds[kind], lambda case: case.group)
        for group, count in _places(groups, places).items():
            chosen |= {case.id for case in groups[group][:count]}
    return tuple(case for case in ordered if case.id in chosen)


def _strata(
    cases: Iterable[Case], stratum: Callable[[Case], Hashable]
) -> dict[Hashable, list[Case]]:
    strata: dict[Hashable, list[Case]] = {}
    for case in cases:
        strata.setdefault(stratum(case), []).append(case)
    return strata


def _places(
    strata: Mapping[Hashable, Sequence[Case]], limit: int
) -> dict[Hashable, int]:
    """Share `limit` places out by the largest remainder.

    No stratum has one more or less than its share says. Equal remainders go to whichever
    stratum's first case stands earlier in the order.
    """
    total = sum(map(len, strata.values()))
    shares = {key: limit * len(rows) / total for key, rows in strata.items()}
    places = {key: int(share) for key, share in shares.items()}
    by_remainder = sorted(shares, key=lambda key: places[key] - shares[key])
    for key in by_remainder[: limit - sum(places.values())]:
        places[key] += 1
    return places


def _place(case_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{case_id}".encode()).digest()
