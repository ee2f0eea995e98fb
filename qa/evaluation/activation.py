"""The check of a version against the saved test cases, before it is activated."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.models import User
from django.db import transaction

from accounts.exceptions import NescioError
from jobs.models import Job
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from qa.exceptions import PolicyError
from qa.policies.models import Policy
from qa.policies.services import activate, active_policy

from .cases import Case
from .knowledge import asked_of
from .models import EvaluationResult, EvaluationRun, SavedCase
from .runs import KIND, begin, finish, go_on
from .saved_cases import cases_of, digest_of_cases
from .suites.own import OWN_NAME
from .suites.registry import open_suite

logger = logging.getLogger(__name__)


class CaseState(StrEnum):
    """The progress of the test cases under a version."""

    NONE = "none"  # no test case is saved
    UNASKED = "unasked"
    RUNNING = "running"
    STOPPED = "stopped"  # a run is unfinished, and no job continues it
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckedCase:
    """A test case, its result, and whether it passes; None if it was not asked.

    `before` is whether it passes under the active version.
    """

    saved: SavedCase
    case: Case
    result: EvaluationResult | None
    passes: bool | None
    before: bool | None

    @property
    def has_changed(self) -> bool:
        return None not in (self.passes, self.before) and self.passes != self.before


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """All test cases under one version; `asked` of the `total` have a result."""

    state: CaseState
    cases: tuple[CheckedCase, ...]
    run: EvaluationRun | None
    asked: int = 0
    is_outdated: bool = False  # entries have changed since

    @property
    def total(self) -> int:
        return len(self.cases)

    @property
    def failed(self) -> int:
        return sum(each.passes is False for each in self.cases)

    @property
    def needs_reason(self) -> bool:
        return self.state not in (CaseState.NONE, CaseState.PASSED)

    @property
    def in_words(self) -> str:
        total = self.total
        match self.state:
            case CaseState.NONE:
                return "No test case is saved."
            case CaseState.UNASKED:
                if total == 1:
                    return "1 test case is saved and was not asked."
                return f"{total} test cases are saved and were not asked."
            case CaseState.RUNNING:
                return f"{self.asked} of {total} test cases were asked so far."
            case CaseState.STOPPED:
                return (
                    f"{self.asked} of {total} test cases were asked; the run stopped."
                )
            case CaseState.PASSED:
                all_pass = f"All {total} test cases pass."
                said = "The test case passes." if total == 1 else all_pass
                return said + self._since
            case CaseState.FAILED:
                return f"{self.failed} of {total} test cases fail.{self._since}"

    @property
    def _since(self) -> str:
        is_outdated = self.is_outdated
        return " Entries have changed since they were asked." if is_outdated else ""


def check_of(policy: Policy) -> CaseCheck:
    """Return the newest run of the current test cases under a version, case by case."""
    saved = cases_of(policy.knowledge_base)
    if not saved:
        return CaseCheck(CaseState.NONE, (), None)
    data = digest_of_cases(case for _, case in saved)
    run = _newest(policy, data)
    active = active_policy(policy.knowledge_base)
    results = _results(run)
    before = _results(_newest(active, data)) if active != policy else {}
    rows = tuple(
        CheckedCase(
            saved=row,
            case=case,
            result=results.get(case.id),
            passes=_passes(results.get(case.id)),
            before=_passes(before.get(case.id)),
        )
        for row, case in saved
    )
    state = _state(run, rows, is_asked=_is_asked(policy, data))
    is_begun = run is not None and run.state == EvaluationRun.State.RUNNING
    return CaseCheck(
        state=state,
        cases=rows,
        run=run,
        asked=0 if state is CaseState.RUNNING and not is_begun else len(results),
        is_outdated=run is not None
        and run.parameters.get("knowledge")
        != asked_of(policy.knowledge_base)["knowledge"],
    )


def ask_cases(policy: Policy, *, by: User | None) -> Job:
    """Ask the test cases under a version in the background.

    The active version is asked first, if it was not yet, to show what would change.
    """
    policy.knowledge_base.check_in_use()
    active = active_policy(policy.knowledge_base)
    data = digest_of_cases(case for _, case in cases_of(policy.knowledge_base))
    if active != policy and _newest(active, data) is None:
        _enqueue(active, data, by)
    return _enqueue(policy, data, by)


def ask_cases_now(
    policy: Policy, *, by: User | None, on_progress: Callable[[int, int], None]
) -> None:
    """Ask the test cases under a version now, unless that is done or under way.

    An error is logged and leaves them unasked or partly asked.
    """
    if check_of(policy).state not in (CaseState.UNASKED, CaseState.STOPPED):
        return
    base = policy.knowledge_base.slug
    try:
        suite = open_suite(OWN_NAME, knowledge_base=base, policy=policy, by=by)
        run = begin(suite, by=by)
        before = run.results.count()
        for done, _ in enumerate(go_on(run, suite), before + 1):
            on_progress(done, run.total)
        finish(run)
    except NescioError as error:
        logger.warning("The test cases were not asked under %s: %s", policy, error)


@transaction.atomic
def activate_checked(policy: Policy, *, by: User | None, reason: str = "") -> Policy:
    """Activate a version whose test cases pass, or for a stated reason; see `activate`.

    Raises:
        PolicyError: Test cases fail or were not asked, and no reason is given; or this
            version or the active one requires them to pass with the current entries.
    """
    # Lock, so that no test case is saved between the check and the activation.
    base = KnowledgeBase.objects.select_for_update().get(pk=policy.knowledge_base_id)
    base.check_in_use()
    check = check_of(policy)
    why = reason.strip()
    if is_blocked(policy, check):
        raise PolicyError(
            f"{policy} can't be activated: {check.in_words} The policy requires them "
            "to pass with the current entries. Ask them, and correct the thresholds or "
            "the test cases."
        )
    if check.needs_reason and not policy.is_active and not why:
        raise PolicyError(
            f"{check.in_words} Ask them, or state the reason why {policy} should be "
            "activated anyway."
        )
    is_told = check.state in (CaseState.PASSED, CaseState.FAILED)
    return activate(
        policy,
        by=by,
        reason=why[:1000] if check.needs_reason else "",
        failed_cases=check.failed if is_told else None,
    )


def is_blocked(policy: Policy, check: CaseCheck) -> bool:
    """Return whether cases must pass but did not, or passed only with other entries."""
    if policy.is_active or not must_pass(policy):
        return False
    return check.needs_reason or check.is_outdated


def must_pass(policy: Policy) -> bool:
    """Return whether this version or the active one requires test cases to pass."""
    active = active_policy(policy.knowledge_base)
    return policy.test_cases_must_pass or active.test_cases_must_pass


def _enqueue(policy: Policy, data: str, by: User | None) -> Job:
    return enqueue(
        KIND,
        {
            "suite": OWN_NAME,
            "knowledge_base": policy.knowledge_base.slug,
            "policy_id": policy.pk,
        },
        owner=by,
        idempotency_key=_job_key(policy, data),
    )


def _job_key(policy: Policy, data: str) -> str:
    return f"{KIND} cases {policy.pk} {data}"[:200]


def _is_asked(policy: Policy, data: str) -> bool:
    """Return whether a job asks the test cases or is waiting to."""
    jobs = Job.objects.unfinished().filter(idempotency_key=_job_key(policy, data))
    return jobs.exists()


def _newest(policy: Policy, data: str) -> EvaluationRun | None:
    runs = EvaluationRun.objects.filter(
        suite=OWN_NAME,
        policy=policy,
        parameters__contains={"data": data, "limit": None, "shadow": False},
    )
    return runs.order_by("-started_at").first()


def _results(run: EvaluationRun | None) -> Mapping[str, EvaluationResult]:
    rows = run.results.select_related("answer") if run else ()
    return {row.case_id: row for row in rows}


def _state(
    run: EvaluationRun | None, rows: tuple[CheckedCase, ...], *, is_asked: bool
) -> CaseState:
    if is_asked:
        return CaseState.RUNNING
    if run is None:
        return CaseState.UNASKED
    if run.state == EvaluationRun.State.RUNNING:
        return CaseState.STOPPED
    failed = any(each.passes is not True for each in rows)
    return CaseState.FAILED if failed else CaseState.PASSED


def _passes(result: EvaluationResult | None) -> bool | None:
    if result is None:
        return None
    expected = [
        value for name, value in result.measures.items() if name.startswith("expected_")
    ]
    if not result.is_answerable:
        return not result.is_answered and all(expected)
    return bool(result.is_answered and result.is_correct and all(expected))
