"""Choosing some of many labelled questions: seeded, and fair to every stratum."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence

from .cases import Case


def in_seeded_order(cases: Iterable[Case], seed: int) -> list[Case]:
    """Return the cases in an order that depends on their ids and the seed alone."""
    return sorted(cases, key=lambda case: _place(case.id, seed))


def sample(
    cases: Sequence[Case],
    limit: int | None,
    *,
    seed: int,
    stratum: Callable[[Case], Hashable] = lambda case: case.is_answerable,
) -> tuple[Case, ...]:
    """Return `limit` of the cases in a seeded order, every stratum by its share.

    Places are shared out by the largest remainder, so that no stratum has one more or
    less than its share says. The first so many of the order would do as well only if
    the strata were equally large; all of them are returned where `limit` is None.
    """
    ordered = in_seeded_order(cases, seed)
    if limit is None or limit >= len(ordered):
        return tuple(ordered)
    strata: dict[Hashable, list[Case]] = {}
    for case in ordered:
        strata.setdefault(stratum(case), []).append(case)
    shares = {key: limit * len(rows) / len(ordered) for key, rows in strata.items()}
    places = {key: int(share) for key, share in shares.items()}
    # Equal remainders go to whichever stratum's first case stands earlier in the order.
    by_remainder = sorted(shares, key=lambda key: places[key] - shares[key])
    for key in by_remainder[: limit - sum(places.values())]:
        places[key] += 1
    chosen = {case.id for key, rows in strata.items() for case in rows[: places[key]]}
    return tuple(case for case in ordered if case.id in chosen)


def _place(case_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{case_id}".encode()).digest()
