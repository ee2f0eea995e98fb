"""Several suites asked as one run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby

from kb.models import KnowledgeBase
from qa.evaluation.asked import Considered
from qa.evaluation.judged import Judged, Parameter, Suite
from qa.evaluation.runs import considered_of, thresholds_of
from qa.models import Policy

JOIN = "+"


class Joined:
    """`judged.Suite`: the questions of several, ids and groups marked by suite."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        """Join suites with different names."""
        self._suites = {suite.name: suite for suite in suites}
        self.name = JOIN.join(self._suites)
        self.protocol = "\n\n".join(f"{s.name}: {s.protocol}" for s in suites)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Those of every suite, and what decides in it."""
        return {
            f"{name}.{key}": value
            for name, suite in self._suites.items()
            for key, value in _parameters(suite).items()
        }

    @property
    def knowledge_base(self) -> KnowledgeBase | None:
        """The one that all ask, if it is one."""
        asked = {suite.knowledge_base for suite in self._suites.values()}
        return asked.pop() if len(asked) == 1 else None

    @property
    def policy(self) -> Policy | None:
        """What decides: the first suite's; the others' is in the parameters."""
        return next(iter(self._suites.values())).policy

    @cached_property
    def case_ids(self) -> Sequence[str]:
        """The ids of one suite after the other, each behind its suite's name."""
        return [
            f"{name}/{case_id}"
            for name, suite in self._suites.items()
            for case_id in suite.case_ids
        ]

    def judge(self, case_id: str) -> Judged:
        """Ask one question as its suite does.

        Raises:
            UnavailableError: A model is down; the run goes on later from here.
        """
        name, _, own_id = case_id.partition("/")
        return _marked(name, self._suites[name].judge(own_id))

    def consider(self, case_ids: Iterable[str]) -> Iterator[Considered]:
        """Ask questions as their suites do, writing nothing where these write nothing."""
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
