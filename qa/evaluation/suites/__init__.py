"""The suites by name."""

from collections.abc import Mapping
from typing import Unpack

from qa.evaluation.judged import Suite
from qa.exceptions import EvaluationDataError

from .clinc import open_clinc
from .demo import open_demo
from .joined import JOIN, Joined
from .open_domain import OPEN_DOMAIN
from .options import SuiteFactory, SuiteOptions
from .own import open_own
from .scifact import open_scifact
from .selfaware import open_selfaware
from .squad2 import open_squad2

_SUITES: dict[str, SuiteFactory] = {
    "demo": open_demo,
    "squad2": open_squad2,
    "selfaware": open_selfaware,
    "clinc-oos": open_clinc,
    **OPEN_DOMAIN,
    "scifact": open_scifact,
    "own": open_own,
}


def suites() -> Mapping[str, SuiteFactory]:
    """Return what opens each suite, by name."""
    return _SUITES


def register_suites(more: Mapping[str, SuiteFactory]) -> None:
    """Add suites of a package that this one does not know, such as a study's."""
    _SUITES.update(more)


def open_suite(name: str, **options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite called `name`, ready to be asked.

    Args:
        name: Of one suite, or of several joined by "+", which are asked as one.
        options: As of every suite; one that says nothing is left to the suite.

    Raises:
        EvaluationDataError: There is none, or it can't be asked here or with these
            options.
    """
    opened = [_factory(part)(**options) for part in name.split(JOIN)]
    return opened[0] if len(opened) == 1 else Joined(opened)


def _factory(name: str) -> SuiteFactory:
    known = suites()
    if name not in known:
        raise EvaluationDataError(
            f"There is no suite {name[:80]!r}; there are: {', '.join(sorted(known))}."
        )
    return known[name]
