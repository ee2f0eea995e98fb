"""What a request to the calibration pages chose, read from its query or its form."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, QueryDict
from django.shortcuts import get_object_or_404

from kb.models import KnowledgeBase
from qa.evaluation.effects import Labelled
from qa.evaluation.labelled import LabelledAnswer
from qa.evaluation.runs import labelled_of
from qa.models import EvaluationRun, Policy
from qa.pipeline.policy import Policy as PolicyValue
from qa.services.policies import PolicyChanges, active_policy
from qa.services.threshold_effects import has_drifted, runs_of

from .calibration_forms import ThresholdsForm

Row = TypeVar("Row", Policy, EvaluationRun)


@dataclass(frozen=True)
class Desk:
    """What a request chose: a run of labelled answers, a version, thresholds to try."""

    knowledge_base: KnowledgeBase
    runs: tuple[EvaluationRun, ...]
    policies: tuple[Policy, ...]
    run: EvaluationRun | None
    base: Policy
    form: ThresholdsForm

    @cached_property
    def tried(self) -> PolicyValue | None:
        """The base with the thresholds to try; None where they make no sense."""
        tried = self.form.tried()
        return None if tried is None else replace(self.base.as_value(), **tried)

    @cached_property
    def answers(self) -> tuple[LabelledAnswer, ...]:
        """The run's labelled answers; none without a run."""
        return tuple(labelled_of(self.run)) if self.run else ()

    @cached_property
    def labelled(self) -> Labelled | None:
        """The same as columns; None without any."""
        return Labelled(self.answers) if self.answers else None

    def changes(self) -> PolicyChanges | None:
        """Return what a version of the tried thresholds sets otherwise than the base.

        They hold for the models that measured what they were tried on.
        """
        changes = self.form.tried()
        if changes is not None and self.run:
            changes["calibrated_embedder"] = self.run.embedder
            changes["calibrated_language_model"] = self.run.language_model
            changes["calibrated_retrieval"] = self.run.retrieval
            changes["calibrated_probes"] = self.run.probes
        return changes

    def query(self, **changes: object) -> str:
        """Return the choice as the query of an address."""
        chosen = {"run": self.run.pk if self.run else "", "base": self.base.pk}
        return urlencode(chosen | changes)


def read_desk(request: HttpRequest, pk: int) -> Desk:
    """Read what was chosen; without a choice the newest run and what decides now.

    Raises:
        Http404: There is no such knowledge base, or no such run or version of it.
    """
    knowledge_base = get_object_or_404(KnowledgeBase, pk=pk)
    chosen: QueryDict = request.POST if request.method == "POST" else request.GET
    rows = knowledge_base.policies.annotate(has_drifted=has_drifted())
    rows = rows.select_related("certificate", "created_by")
    policies: tuple[Policy, ...] = tuple(rows.order_by("-created_at", "-pk"))
    if not policies:
        policies = (active_policy(knowledge_base),)
    runs = tuple(runs_of(knowledge_base))
    finished = (run for run in runs if run.state == EvaluationRun.State.FINISHED)
    newest = next(finished, None) or next(iter(runs), None)
    active = next((policy for policy in policies if policy.is_active), policies[0])
    base = chosen_of(policies, chosen.get("base", "")) or active
    return Desk(
        knowledge_base=knowledge_base,
        runs=runs,
        policies=policies,
        run=chosen_of(runs, chosen.get("run", "")) or newest,
        base=base,
        form=ThresholdsForm(chosen, base=base),
    )


def chosen_of(rows: tuple[Row, ...], asked: str) -> Row | None:
    """Return the row of this key; None if none is asked for.

    Raises:
        Http404: There is no such row.
    """
    if not asked:
        return None
    found = next((row for row in rows if str(row.pk) == asked), None)
    if found is None:
        raise Http404(f"There is no {asked[:20]!r} here.")
    return found


def author_of(request: HttpRequest) -> User | None:
    """Return who asks, to be named as the author."""
    return request.user if isinstance(request.user, User) else None
