"""`manage.py calibrate WHAT`: choose thresholds from labelled answers or questions."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError

from qa.answers.questions import find_knowledge_base
from qa.calibration.adaptive_thresholds import min_known_table, propose_min_known
from qa.calibration.self_calibration import UNANSWERABLE, Mode, calibrate_itself
from qa.calibration.services import Labels, certify, labels_of_run, make_by_cost
from qa.calibration.thresholds import CALIBRATABLE, Method, NotCertified
from qa.calibration.wording import words_of
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.tables import percent, print_tables
from qa.exceptions import (
    CalibrationError,
    EvaluationDataError,
    PolicyNotFoundError,
    TrainingDataError,
)
from qa.management import base
from qa.management.progress import Bars
from qa.pipeline.policy import default
from qa.policies.api import CertificateSerializer
from qa.policies.models import Policy
from qa.policies.services import activate as let_decide
from qa.policies.services import active_policy

NONE_EARNED = 3
Options = dict[str, Any]
Parser = argparse.ArgumentParser


class Command(base.KindsCommand):
    help = (
        "Choose thresholds from labelled answers or questions. WHAT defaults to "
        "thresholds. Exit code: 0, or 3 if no thresholds earn a certificate, 1 if no "
        "min_known keeps the risk, 2 if the calibration can't run."
    )

    metavar = "WHAT"

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(with_default(argv))


def with_default(argv: list[str]) -> list[str]:
    if len(argv) < 3 or argv[2] in {*KINDS, "-h", "--help"}:
        return argv
    return [*argv[:2], "thresholds", *argv[2:]]


def _add_thresholds(parser: Parser) -> None:
    add = parser.add_argument
    add("--run", type=int, required=True, metavar="ID", help="The evaluation run.")
    add(
        "--policy", type=int, metavar="ID",
        help="Version to start from (default: the active one of the run's base).",
    )  # fmt: skip
    add(
        "--epsilon", type=float, default=0.05,
        help="Promised risk: share of wrong answers shown (default 0.05).",
    )  # fmt: skip
    add(
        "--delta", type=float, default=0.05,
        help="Probability that the promise is broken (default 0.05).",
    )  # fmt: skip
    add(
        "--signals", nargs="+", choices=CALIBRATABLE, default=list(CALIBRATABLE),
        help="Signals whose thresholds are chosen (default: all).",
    )  # fmt: skip
    add(
        "--method", choices=[method.value for method in Method],
        default=Method.LEARN_THEN_TEST.value,
        help="selection_with_guaranteed_risk takes one signal only.",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="Random seed of the split.")
    add(
        "--cost-wrong", type=float, metavar="X",
        help="Choose by cost instead, without a promise: cost of a wrong answer.",
    )  # fmt: skip
    add(
        "--cost-refused", type=float, metavar="Y",
        help="Cost of a refusal where the draft was right.",
    )  # fmt: skip
    add("--name", default="", help="Name of the new version.")
    add("--activate", action="store_true", help="Activate the new version at once.")
    add("--json", type=Path, metavar="PATH", help="Also write the result there.")


def _calibrate_thresholds(command: base.Command, options: Options) -> None:
    """Choose the thresholds that show the most answers at a risk of at most epsilon.

    With confidence 1 - delta, from the labelled answers of an evaluation; stored as a
    new policy version with its certificate.
    """
    by_cost = options["cost_wrong"] is not None
    if by_cost != (options["cost_refused"] is not None):
        msg = "Give both --cost-wrong and --cost-refused, or neither."
        raise CommandError(msg, returncode=2)
    labels = labels_of_run(_find_run(options["run"]))
    start = _find_base(options["policy"], labels)
    find = _choose_by_cost if by_cost else _certify
    made, result = find(command, start, labels, options)
    if made is not None:
        if options["activate"]:
            let_decide(made)
        command.console().print(_kept(made))
    if path := options["json"]:
        base.write_figures(path, dumps(result, indent=2, default=str))
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


def _find_base(number: int | None, labels: Labels) -> Policy:
    if number is None:
        return active_policy(labels.policy.knowledge_base)
    found = Policy.objects.filter(pk=number).first()
    if found is None:
        raise PolicyNotFoundError(f"There is no policy version {number}.")
    return found


def _certify(
    command: base.Command, policy: Policy, labels: Labels, options: Options
) -> tuple[Policy | None, Options]:
    found = certify(
        policy,
        labels,
        by=None,
        method=Method(options["method"]),
        **{n: options[n] for n in ("epsilon", "delta", "signals", "seed", "name")},
    )
    lines = []
    if isinstance(found, NotCertified):
        made, warnings = None, found.warnings
        lines = [found.explanation]
        result = {"certified": False, **asdict(found)}
    else:
        made, kept = found, found.certificate
        warnings, result = kept.warnings, CertificateSerializer(kept).data
        result = {"certified": True, **result}
        lines = [
            f"{str(kept).capitalize()}: of {kept.labelled} labelled answers "
            f"{kept.shown} are shown ({kept.coverage:.1%}), {kept.wrong} of them "
            f"wrong; the risk is at most {kept.bound:.2%} by question, and "
            f"{kept.group_bound:.2%} by group of questions ({kept.groups} groups)."
        ]
        lines += _threshold_lines(kept.thresholds)
    lines += [f"Warning: {warning}" for warning in warnings]
    command.console().print("\n".join(lines))
    return made, result


def _choose_by_cost(
    command: base.Command, policy: Policy, labels: Labels, options: Options
) -> tuple[Policy, Options]:
    made, choice = make_by_cost(
        policy,
        labels,
        wrong_cost=options["cost_wrong"],
        refused_cost=options["cost_refused"],
        by=None,
        **{name: options[name] for name in ("signals", "seed", "name")},
    )
    lines = [
        f"The lowest mean cost per question is {choice.cost:.4g} (95 % interval "
        f"{choice.low:.4g} to {choice.high:.4g}; being the minimum, it looks "
        f"{choice.optimism:.2g} cheaper than it is): {choice.shown} of "
        f"{choice.labelled} shown, {choice.wrong} of them wrong, "
        f"{choice.refused_right} right ones refused. Nothing is promised.",
        *_threshold_lines(choice.thresholds),
    ]
    command.console().print("\n".join(lines))
    values = asdict(choice)
    del values["policy"]
    return made, {"certified": False, **values}


def _threshold_lines(thresholds: Mapping[str, float]) -> list[str]:
    return [f"  {field} = {value:g}" for field, value in thresholds.items()]


def _kept(policy: Policy) -> str:
    state = "is active now" if policy.is_active else "waits to be activated"
    return f"{policy} (version {policy.pk}) is stored and {state}."


def _add_itself(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--knowledge-base", default="", metavar="SLUG",
        help="The knowledge base (default: the oldest).",
    )  # fmt: skip
    add(
        "--target", type=base.share, metavar="SHARE",
        help="Largest share of wrong answers among those shown (default: the knowledge "
        "base's setting, initially 0.05).",
    )  # fmt: skip
    add(
        "--unanswerable", type=base.share, default=UNANSWERABLE,
        metavar="SHARE",
        help="Assumed share of questions that no entry answers (default 0.5).",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="Random seed of the questions.")
    add("--activate", action="store_true", help="Activate the new version at once.")


def _calibrate_itself(command: base.Command, options: Options) -> None:
    """Choose min_entry_answer from the knowledge base's own questions.

    Each is asked with its entry and without it; stored as a new policy version, without
    a certificate.
    """
    # Imported here because it pulls in torch, which --help does not need.
    from qa.inference.configured import load_writer  # noqa: PLC0415

    with Bars(command.errors) as bars:
        kept = calibrate_itself(
            find_knowledge_base(options["knowledge_base"]),
            **{name: options[name] for name in ("target", "unanswerable", "seed")},
            mode=Mode.ACTIVATE if options["activate"] else Mode.PROPOSE,
            load_writer=load_writer if settings.LANGUAGE_SERVER_URL else None,
            on_progress=partial(bars.at, "questions"),
        )
    lines = [
        *words_of(kept).lines,
        f"  min_entry_answer = {kept.policy.min_entry_answer:g}",
        f"  min_answerability = {kept.policy.min_answerability:g}",
        *(f"Warning: {note}" for note in kept.notes),
    ]
    command.console().print("\n".join([*lines, _kept(kept.policy)]))


def _add_monitor(parser: Parser) -> None:
    add = parser.add_argument
    _add_files(parser)
    add(
        "--steering", type=float, default=default("steering"), metavar="N",
        help="Steering strength, as in a policy (default 0.3).",
    )  # fmt: skip
    add("--limit", type=base.positive, help="Ask only a seeded sample.")
    add("--seed", type=int, default=0, help="Random seed of sample and halves.")


def _calibrate_monitor(command: base.Command, options: Options) -> None:
    """Choose min_token_confidence from labelled questions answered closed-book.

    The active directions monitor the answers; the threshold that best separates right
    answers from wrong ones is chosen on one half of them and measured on the other.
    """
    # Imported here because it pulls in torch, which --help does not need.
    from qa.calibration.adaptive_thresholds import (  # noqa: PLC0415
        halves,
        self_knowledge_row,
        self_knowledge_table,
        watch,
    )
    from qa.evaluation.cases import Case, in_seeded_order, question_id  # noqa: PLC0415
    from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415
    from qa.training.labelled_questions import questions_of_file  # noqa: PLC0415

    rows = [row for file in options["files"] for row in questions_of_file(file)]
    cases = {
        (key := question_id(row.question)): Case(
            key,
            row.question,
            is_answerable=True,
            references=row.references,
            group=row.group,
        )
        for row in rows
    }
    ordered = in_seeded_order(cases.values(), options["seed"])
    writer, steering = monitored_writer(), options["steering"]
    with Bars(command.errors) as bars:
        watched = watch(
            writer,
            ordered[: options["limit"]],
            steering=steering,
            by_answer=True,
            on_progress=partial(bars.at, "questions"),
        )
    parts = halves(watched)
    right = [sum(each.is_positive for each in part) for part in parts]
    if not all(0 < n < len(part) for n, part in zip(right, parts, strict=True)):
        raise EvaluationDataError(
            f"Of {len(watched)} questions {sum(right)} were answered correctly: each "
            "half needs right and wrong answers. Give more questions."
        )
    row, console = self_knowledge_row(steering, *parts), command.console()
    table = self_knowledge_table([row], ("right answers", "wrong ones"))
    print_tables([table], (), console)
    console.print(
        f"Chosen on {len(parts[0])} questions and measured on {len(parts[1])} others. "
        f"Proposed: min_token_confidence {row[1]:.2f} with steering {steering:g}, for "
        f"the writer {writer.fingerprint[:12]} only."
    )
    console.print(f"calibrated_own_knowledge: {writer.fingerprint}")


def _add_min_known(parser: Parser) -> None:
    _add_files(parser)
    parser.add_argument(
        "--risk", type=base.share, required=True, metavar="SHARE",
        help="Largest share of the model's own answers that may be wrong.",
    )  # fmt: skip
    parser.add_argument(
        "--delta", type=base.share, default=0.1, metavar="SHARE",
        help="Probability that the guaranteed one exceeds it (default 0.1).",
    )  # fmt: skip


def _calibrate_min_known(command: base.Command, options: Options) -> None:
    """Choose min_known from labelled questions that the language model answers alone.

    The active boundary probe is asked about each; use questions that the probe was not
    trained on.
    """
    # Imported here because it pulls in torch, which --help does not need.
    from qa.training.boundary import judge_questions  # noqa: PLC0415

    risk, console = options["risk"], command.console()
    with Bars(command.errors) as bars:
        known, right, groups, fingerprint = judge_questions(
            options["files"], on_progress=bars.at
        )
    try:
        found = propose_min_known(
            known, right, risk=risk, delta=options["delta"], groups=groups
        )
    except ValueError as error:
        raise TrainingDataError(f"{error}.") from error
    console.print(
        f"{len(right):,} questions of {len(set(groups)):,} groups, {sum(right):,} of them "
        "answered correctly without retrieval."
    )
    note = "Set min_known to the guaranteed value; seen holds for these questions only."
    if found.guaranteed is None:
        note = (
            f"No threshold is sure to keep the risk at {percent(risk)}: let the policy "
            "always retrieve, or give more questions."
        )
    print_tables([min_known_table(found)], [note], console)
    console.print(f"calibrated_own_knowledge: {fingerprint}")
    if found.guaranteed is None:
        raise SystemExit(1)


def _add_files(parser: Parser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help='JSON Lines: {"question": "...", "answers": ["..."]}.',
    )  # fmt: skip


KINDS: Final[Mapping[str, base.Kind]] = {
    "thresholds": (_add_thresholds, _calibrate_thresholds),
    "itself": (_add_itself, _calibrate_itself),
    "monitor": (_add_monitor, _calibrate_monitor),
    "min_known": (_add_min_known, _calibrate_min_known),
}
Command.kinds = KINDS
