"""Choose thresholds from an evaluation's labelled answers, with a stated risk or by cost."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from qa.calibration.services import Labels, certify, labels_of_run, make_by_cost
from qa.calibration.thresholds import CALIBRATABLE, CostChoice, Method, NotCertified
from qa.evaluation.models import EvaluationRun
from qa.exceptions import CalibrationError, PolicyNotFoundError
from qa.policies.api import CertificateSerializer
from qa.policies.models import Policy
from qa.policies.services import activate as let_decide
from qa.policies.services import active_policy

NONE_EARNED = 3


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command line asks for, by the options' names."""

    epsilon: float
    delta: float
    signals: Sequence[str]
    method: str
    seed: int
    cost_wrong: float | None
    cost_refused: float | None
    name: str


class Command(BaseCommand):
    """`manage.py calibrate --run ID`."""

    help = (
        "Choose the thresholds that show most at a risk of at most epsilon, with "
        "confidence 1 - delta, from the labelled answers of an evaluation, and keep them "
        "as a new policy version with its certificate. Exit code: 0, or 3 if no "
        "thresholds earn it, 2 if it can't be tried."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--run", type=int, required=True, metavar="ID", help="The evaluation."
        )
        parser.add_argument(
            "--policy",
            type=int,
            metavar="ID",
            help="The version to start from; the active one of what the run asked.",
        )
        parser.add_argument(
            "--epsilon",
            type=float,
            default=0.05,
            help="Promised risk, wrong among shown (default 0.05).",
        )
        parser.add_argument(
            "--delta",
            type=float,
            default=0.05,
            help="Probability that the promise is broken (default 0.05).",
        )
        parser.add_argument(
            "--signals",
            nargs="+",
            choices=CALIBRATABLE,
            default=list(CALIBRATABLE),
            help="Those whose thresholds are chosen (default: all).",
        )
        parser.add_argument(
            "--method",
            choices=[method.value for method in Method],
            default=Method.LEARN_THEN_TEST.value,
            help="selection_with_guaranteed_risk is for one signal.",
        )
        parser.add_argument("--seed", type=int, default=0, help="Of the split.")
        parser.add_argument(
            "--cost-wrong",
            type=float,
            metavar="X",
            help="Choose by cost instead, without a promise: of a wrong shown answer.",
        )
        parser.add_argument(
            "--cost-refused",
            type=float,
            metavar="Y",
            help="Of a refusal where the draft was right.",
        )
        parser.add_argument("--name", default="", help="Of the new version.")
        parser.add_argument(
            "--activate",
            action="store_true",
            help="Let the new version decide at once.",
        )
        parser.add_argument(
            "--json", type=Path, metavar="PATH", help="Also write the result there."
        )

    def handle(
        self,
        *,
        run: int,
        policy: int | None,
        activate: bool,
        json: Path | None,
        **options: object,
    ) -> None:
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        wanted = _Wanted(**{name: options[name] for name in _Wanted.__annotations__})  # type: ignore[arg-type]  # declared above
        if (wanted.cost_wrong is None) != (wanted.cost_refused is None):
            msg = "Give both --cost-wrong and --cost-refused, or neither."
            raise CommandError(msg, returncode=2)
        try:
            labels = labels_of_run(_find_run(run))
            base = _base(policy, labels)
            find = _certified if wanted.cost_wrong is None else _cheapest
            made, result = find(base, labels, wanted, console)
            if made is not None and activate:
                let_decide(made)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        if made is not None:
            state = "and decides now" if made.is_active else "and waits to be activated"
            console.print(f"{made} (version {made.pk}) is kept {state}.")
        if json:
            json.write_text(dumps(result, indent=2, default=str) + "\n", "utf-8")
        if made is None:
            msg = "No certificate was earned; nothing was changed."
            raise CommandError(msg, returncode=NONE_EARNED)


def _find_run(number: int) -> EvaluationRun:
    rows = EvaluationRun.objects.select_related("policy", "knowledge_base")
    found = rows.filter(pk=number).first()
    if found is None:
        last = EvaluationRun.objects.values_list("pk", flat=True)[:10]
        known = ", ".join(map(str, last)) or "none yet"
        raise CalibrationError(f"There is no run {number}; the latest: {known}.")
    return found


def _base(number: int | None, labels: Labels) -> Policy:
    if number is None:
        return active_policy(labels.policy.knowledge_base)
    found = Policy.objects.filter(pk=number).first()
    if found is None:
        raise PolicyNotFoundError(f"There is no policy version {number}.")
    return found


def _certified(
    policy: Policy, labels: Labels, wanted: _Wanted, console: Console
) -> tuple[Policy | None, dict[str, Any]]:
    found = certify(
        policy,
        labels,
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        by=None,
        signals=wanted.signals,
        method=Method(wanted.method),
        seed=wanted.seed,
        name=wanted.name,
    )
    if isinstance(found, NotCertified):
        console.print(found.explanation)
        _print_warnings(found.warnings, console)
        return None, {"certified": False, **asdict(found)}
    kept = found.certificate
    console.print(
        f"{str(kept).capitalize()}: of {kept.labelled} labelled answers {kept.shown} are "
        f"shown ({kept.coverage:.1%}), {kept.wrong} of them wrong; the risk is at most "
        f"{kept.bound:.2%}."
    )
    if kept.group_bound is not None:
        console.print(f"Over {kept.groups} resampled groups: {kept.group_bound:.2%}.")
    for field, value in kept.thresholds.items():
        console.print(f"  {field} = {value:g}")
    _print_warnings(kept.warnings, console)
    return found, {"certified": True, **CertificateSerializer(kept).data}


def _cheapest(
    policy: Policy, labels: Labels, wanted: _Wanted, console: Console
) -> tuple[Policy | None, dict[str, Any]]:
    made, choice = make_by_cost(
        policy,
        labels,
        wrong_cost=wanted.cost_wrong or 0.0,
        refused_cost=wanted.cost_refused or 0.0,
        by=None,
        signals=wanted.signals,
        seed=wanted.seed,
        name=wanted.name,
    )
    console.print(
        f"The least mean cost of a question is {choice.cost:.4g} (95 % interval "
        f"{choice.low:.4g} to {choice.high:.4g}; having been chosen, it looks "
        f"{choice.optimism:.2g} cheaper than it is): {choice.shown} of "
        f"{choice.labelled} shown, {choice.wrong} of them wrong, {choice.refused_right} "
        "right ones refused. Nothing is promised."
    )
    for field, value in choice.thresholds.items():
        console.print(f"  {field} = {value:g}")
    return made, _cost_json(choice)


def _cost_json(choice: CostChoice) -> dict[str, Any]:
    values = asdict(choice)
    del values["policy"]
    return {"certified": False, **values}


def _print_warnings(warnings: tuple[str, ...] | list[str], console: Console) -> None:
    for warning in warnings:
        console.print(f"Mind: {warning}")
