"""Ask labelled questions and print how often the answers and refusals are right."""

import argparse
from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import Console

from accounts.exceptions import UnavailableError
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.tables import as_markdown, print_tables, tables
from qa.evaluation.runs import begin, finish, go_on, judged_of, report_of
from qa.evaluation.suites.options import SuiteOptions, find_policy
from qa.evaluation.suites.registry import JOIN, open_suite, suites
from qa.management import base
from qa.management.progress import Bar

# The rates that --fail-over limits.
_LIMITED = ("false_answers", "false_refusals", "wrong_answers")


class Command(base.Command):
    help = (
        "Ask the labelled questions of a suite and print how often answers and "
        "refusals are right. The same command resumes an interrupted run. Exit code: "
        "0, or 1 with --fail-over if a rate is above it, 2 if the suite can't be run."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        known = ", ".join(sorted(suites()))
        add("suite", type=_suite, help=f"One of {known}; several joined by {JOIN}.")
        add(
            "--data", type=Path, metavar="PATH",
            help="The data set's file, its directory, or a directory of data sets.",
        )  # fmt: skip
        add(
            "--policy", default="", metavar="NAME:VERSION",
            help="The policy to use instead of the knowledge base's active one.",
        )  # fmt: skip
        add(
            "--shadow", action="store_true",
            help="All gates measure and none refuses: one run serves every ablation.",
        )  # fmt: skip
        add("--limit", type=base.positive, metavar="N", help="Ask N sampled questions.")
        add("--seed", type=int, default=0, help="Random seed of the sample.")
        add("--knowledge-base", default="", metavar="SLUG", help="The one to ask.")
        add(
            "--knowledge", type=Path, metavar="PATH",
            help="A file of facts to ask against (suite own).",
        )  # fmt: skip
        add(
            "--articles", nargs="+", default=(), metavar="TITLE",
            help="Use only these articles (suite squad2).",
        )  # fmt: skip
        add(
            "--exclude-articles", nargs="+", default=(), metavar="TITLE",
            help="Use all articles but these.",
        )  # fmt: skip
        add(
            "--anew", action="store_true",
            help="Start over instead of resuming an interrupted run.",
        )  # fmt: skip
        add("--json", type=Path, metavar="PATH", help="Also write the report there.")
        add("--markdown", type=Path, metavar="PATH", help="Also write it as Markdown.")
        add("--plots", type=Path, metavar="DIR", help="Also write its plots there.")
        add(
            "--fail-over", type=base.share, metavar="RATE",
            help="Exit with 1 if more than this share (0 to 1) of the unanswerable "
            "questions was answered, of the answerable ones refused, or of the shown "
            "answers wrong.",
        )  # fmt: skip

    def handle(self, *, suite: str, anew: bool, **options: Any) -> None:
        console = self.console(wrap=True)
        base.require_files(options["json"], options["markdown"])
        base.require_directories(options["plots"])
        try:
            run = _run(suite, _suite_options(options), anew=anew, errors=self.errors)
        except UnavailableError as error:
            kept = "The results so far are kept: the same command continues."
            raise CommandError(f"{error} {kept}", returncode=2) from error
        rows = judged_of(run)
        report = report_of(run, rows)
        console.print(run.protocol, style="dim")
        print_tables(tables(report), report["notes"], console)
        heading = _heading(run)
        if path := options["json"]:
            text = dumps({**heading, **report}, indent=2, ensure_ascii=False)
            base.write_figures(path, text)
        if path := options["markdown"]:
            base.write_figures(path, as_markdown(report, heading))
        if directory := options["plots"]:
            # Imported here because it pulls in matplotlib, which takes a second.
            from qa.evaluation.report.plots import write_plots  # noqa: PLC0415

            policy = run.policy.as_value() if run.policy else None
            with base.writing(directory):
                write_plots(rows, directory, policy=policy)
        if options["fail_over"] is not None:
            _judge(report, options["fail_over"])


def _run(
    name: str, options: SuiteOptions, *, anew: bool, errors: Console
) -> EvaluationRun:
    with Bar("Loading knowledge", errors) as loading:
        options["loading"] = loading.at
        suite = open_suite(name, **options)
    run = begin(suite, anew=anew)
    done = run.results.count()
    if done:
        errors.print(
            f"Resuming the run of {timezone.localtime(run.started_at):%H:%M}: "
            f"{done:,} of {run.total:,} done.",
            highlight=False,
        )
    with Bar("Asking", errors) as asking:
        asking.at(done, run.total)
        for number, _ in enumerate(go_on(run, suite), start=done + 1):
            asking.at(number, run.total)
    return finish(run)


def _suite_options(options: Mapping[str, Any]) -> SuiteOptions:
    policy = options["policy"]
    return SuiteOptions(
        data=options["data"],
        policy=find_policy(policy) if policy else None,
        limit=options["limit"],
        seed=options["seed"],
        shadow=options["shadow"],
        knowledge_base=options["knowledge_base"],
        knowledge=options["knowledge"],
        articles=tuple(options["articles"]),
        exclude_articles=tuple(options["exclude_articles"]),
    )


def _heading(run: EvaluationRun) -> dict[str, object]:
    return {
        "suite": run.suite,
        "run": run.pk,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "protocol": run.protocol,
        "parameters": run.parameters,
        "policy": str(run.policy) if run.policy else "",
        "embedder": run.embedder,
        "language_model": run.language_model,
        "retrieval": run.retrieval,
    }


def _judge(report: Mapping[str, Any], limit: float) -> None:
    rates = {name: report["rates"].get(name, {}).get("rate") for name in _LIMITED}
    over = [
        f"{name.replace('_', ' ')} {rate:.3f}"
        for name, rate in rates.items()
        if rate is not None and rate > limit
    ]
    if over:
        msg = f"Above --fail-over {limit}: {', '.join(over)}."
        raise CommandError(msg, returncode=1)


def _suite(text: str) -> str:
    known = suites()
    for name in text.split(JOIN):
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"there is no suite {name!r}; there are: {', '.join(sorted(known))}"
            )
    return text
