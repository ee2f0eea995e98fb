"""The registry of suites, and the joining of several suites into one run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Unpack

from kb.documents.models import KnowledgeBase
from qa.evaluation.judging import Judged, Parameter, Suite, thresholds_of
from qa.evaluation.question_suite import Considered, considered_of
from qa.exceptions import EvaluationDataError
from qa.policies.models import Policy

from .golden import GOLDEN_NAME, open_golden
from .options import SuiteFactory, SuiteOptions
from .own import open_demo, open_own
from .question_sets import OPEN_DOMAIN, open_clinc, open_selfaware, open_squad2
from .scifact import open_scifact

_SUITES: dict[str, SuiteFactory] = {
    "demo": open_demo,
    "squad2": open_squad2,
    "selfaware": open_selfaware,
    "clinc-oos": open_clinc,
    **OPEN_DOMAIN,
    "scifact": open_scifact,
    "own": open_own,
    GOLDEN_NAME: open_golden,
}


def suites() -> Mapping[str, SuiteFactory]:
    return _SUITES


def register_suites(more: Mapping[str, SuiteFactory]) -> None:
    """Add suites from a package that this one can't import, such as a study's."""
    _SUITES.update(more)


def open_suite(name: str, **options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite called `name`, or several joined by "+" as one."""
    opened = [_factory(part)(**options) for part in name.split(JOIN)]
    return opened[0] if len(opened) == 1 else Joined(opened)


def _factory(name: str) -> SuiteFactory:
    known = suites()
    if name not in known:
        raise EvaluationDataError(
            f"There is no suite {name[:80]!r}; there are: {', '.join(sorted(known))}."
        )
    return known[name]


JOIN = "+"


class Joined:
    """The questions of several suites; ids and groups are prefixed with the suite."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._suites = {suite.name: suite for suite in suites}
        self.name = JOIN.join(self._suites)
        self.protocol = "\n\n".join(f"{s.name}: {s.protocol}" for s in suites)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        return {
            f"{name}.{key}": value
            for name, suite in self._suites.items()
            for key, value in _parameters(suite).items()
        }

    @property
    def knowledge_base(self) -> KnowledgeBase | None:
        asked = {suite.knowledge_base for suite in self._suites.values()}
        return asked.pop() if len(asked) == 1 else None

    @property
    def policy(self) -> Policy | None:
        """The first suite's policy; those of the others are in the parameters."""
        return next(iter(self._suites.values())).policy

    @cached_property
    def case_ids(self) -> Sequence[str]:
        return [
            f"{name}/{case_id}"
            for name, suite in self._suites.items()
            for case_id in suite.case_ids
        ]

    def judge(self, case_id: str) -> Judged:
        name, _, own_id = case_id.partition("/")
        return _marked(name, self._suites[name].judge(own_id))

    def consider(self, case_ids: Iterable[str]) -> Iterator[Considered]:
        for name, ids in groupby(case_ids, key=lambda case_id: case_id.split("/")[0]):
            own_ids = [case_id.partition("/")[2] for case_id in ids]
            for considered in considered_of(self._suites[name], own_ids):
                judged = _marked(name, considered.judged)
                yield Considered(judged, considered.write)


def _marked(name: str, judged: Judged) -> Judged:
    group = f"{name}/{judged.group}" if judged.group else ""
    return replace(judged, id=f"{name}/{judged.id}", group=group)


def _parameters(suite: Suite) -> Mapping[str, Parameter]:
    thresholds = thresholds_of(suite.policy) or {}
    says = {f"policy.{name}": value for name, value in thresholds.items()}
    return {**suite.parameters, **says}
