"""`python -m studies headline`: every paper's headline tables in one report."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import Console

from accounts.exceptions import NescioError
from probes.cards import ProbeKind
from probes.directions.sets import DirectionSettings
from probes.models import Probe
from qa.evaluation.report.tables import TextTable, print_tables
from qa.evaluation.suites.options import SuiteOptions
from qa.evaluation.suites.question_sets import open_squad2
from qa.exceptions import EvaluationDataError, LanguageModelUnavailableError
from qa.inference.configured import load_language_model
from qa.inference.policy_models import load_closed_book_form
from qa.inference.white_box import load_white_box
from qa.management.base import (
    Command as BaseCommand,
)
from qa.management.base import require_directories, write_figures
from qa.management.progress import Bars
from qa.training.directions import read_statements, train_directions
from qa.training.probe import keep
from studies.runs import finished_run
from studies.study import OnProgress, Outcome, Study, file_argument

from .cost import cost_of, seconds_of
from .parts import BY_NAME, DATA, PARTS, RUN, Needs, Part, drafted
from .report import report, verdict_table
from .stored import SHIPPED, Key, Result, find_result, keep_result, key_of

_REPORT: Final = "headline.md"
_STATEMENTS: Final = "true_false/facts_true_false.csv"


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a report by name, and the results of those already done."""

    keys: Mapping[str, Key]
    done: Mapping[str, Result]


class Command(BaseCommand):
    """`python -m studies headline --data DIR [--model M] [--device D]`."""

    help = (
        "Measure every paper's headline tables with one model, and write one report "
        "with a verdict (gains, no gain, harm) and an interval for each claim. First "
        "the time is estimated from a few timed items. Finished parts are kept, and "
        "the same command continues. Exit code: 0, or 2 if a part can't be measured."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        file_argument(
            parser, "Directory of the data sets, each in a directory of its name."
        )
        parser.add_argument(
            "--parts", nargs="+", choices=[part.name for part in PARTS],
            default=[part.name for part in PARTS], metavar="PART",
            help=f"Of {', '.join(part.name for part in PARTS)} (default: all).",
        )  # fmt: skip
        parser.add_argument(
            "--scale", type=_scale, default=1.0, metavar="SHARE",
            help="Share of each part's questions, above 0 and at most 1 (default 1). "
            "A small one shows quickly whether every part runs, with wide intervals.",
        )  # fmt: skip
        parser.add_argument(
            "--plan", action="store_true",
            help="Print which parts are done and how long the rest takes, and stop.",
        )  # fmt: skip
        parser.add_argument(
            "--output", type=Path, metavar="DIR",
            help="Directory for headline.md and the parts' results (default: one for "
            "each model in the variable directory).",
        )  # fmt: skip

    def handle(self, **options: Any) -> None:
        require_directories(options["output"])
        language_model, form = load_language_model(), load_closed_book_form()
        if load_white_box(language_model) is None:
            raise LanguageModelUnavailableError(
                "The report reads activations, which a language server does not "
                "return. Unset NESCIO_LANGUAGE_SERVER_URL and give a directory or a "
                "hub name with --model."
            )
        models = language_model.fingerprint, form.model.fingerprint
        output = options["output"] or (
            settings.PLACES.var / "evaluation" / "headline" / models[0][:12]
        )
        require_directories(output)
        plan = self._plan(options, models, output)
        heading = {
            "language model": form.model.name,
            "fingerprint": models[0][:12],
            "computed in": f"{str(form.model.dtype).removeprefix('torch.')} on "
            f"{form.model.device}",
            "share of the questions": f"{options['scale']:g}",
        }
        results = dict(plan.done)
        write = partial(self._write, heading, results, options["parts"], output)
        write()
        if not options["plan"]:
            self._measure(plan, results, options, output, write)
        if results:
            print_tables([verdict_table(results)], (), self.console(wrap=True))
        self.stdout.write(f"The report is {output / _REPORT}.")
        failed = [name for name, result in results.items() if result.fault]
        if failed:
            msg = f"Not measured: {', '.join(failed)}; the report says why."
            raise CommandError(msg, returncode=2)

    def _plan(
        self, options: Mapping[str, Any], models: tuple[str, str], output: Path
    ) -> Plan:
        """Find the finished parts, and estimate and print the time for the others."""
        scale, data = options["scale"], options["data"]
        keys, missing = {}, []
        for name in options["parts"]:
            try:
                keys[name] = key_of(BY_NAME[name], scale, data, models)
            except EvaluationDataError as error:
                missing.append(str(error))
        for text in missing:
            self.stderr.write(text)
        if not keys:
            raise EvaluationDataError(f"{data} does not contain the data of any part.")
        found = {
            name: find_result(name, key, (output, SHIPPED))
            for name, key in keys.items()
        }
        done = {name: result for name, result in found.items() if result}
        seconds: dict[str, float] = {}
        if len(done) < len(keys):
            times = seconds_of(load_language_model(), load_closed_book_form())
            seconds = {
                name: cost_of(BY_NAME[name], scale, times)
                for name in keys
                if name not in done
            }
        self._state(keys, done, seconds)
        return Plan(keys, done)

    def _state(
        self,
        keys: Mapping[str, Key],
        done: Mapping[str, Result],
        seconds: Mapping[str, float],
    ) -> None:
        rows = [
            (
                name,
                BY_NAME[name].method,
                f"done {done[name].made_on}"
                if name in done
                else f"about {_duration(seconds[name])}",
            )
            for name in keys
        ]
        total = f"about {_duration(sum(seconds.values()))} in the language model"
        rows.append(("all", "without fitting probes and loading knowledge", total))
        shown = TextTable("Time needed", ("part", "", ""), tuple(rows), words=3)
        print_tables([shown], (), Console(file=self.stderr, soft_wrap=True))  # type: ignore[arg-type]  # a text stream but by name

    def _measure(
        self,
        plan: Plan,
        results: dict[str, Result],
        options: Mapping[str, Any],
        output: Path,
        write: "partial[None]",
    ) -> None:
        for name, key in plan.keys.items():
            if name in plan.done:
                continue
            began = time.monotonic()
            day = f"{timezone.localdate():%Y-%m-%d}"
            try:
                with Bars(self.errors) as bars:
                    outcome = _run_part(
                        BY_NAME[name], options["data"], options["scale"], bars.at
                    )
            except (NescioError, OSError, CommandError) as error:
                results[name] = Result(key, day, (), fault=f"not measured: {error}")
                self.stderr.write(f"{name}: {error}")
            else:
                took = round(time.monotonic() - began, 1)
                results[name] = Result(
                    key, day, tuple(outcome.claims), took, outcome.markdown()
                )
                keep_result(name, results[name], output)
            write()

    def _write(
        self,
        heading: Mapping[str, object],
        results: Mapping[str, Result],
        wanted: Sequence[str],
        output: Path,
    ) -> None:
        write_figures(output / _REPORT, report(heading, results, wanted))


def _run_part(part: Part, data: Path, scale: float, on_progress: OnProgress) -> Outcome:
    """Run a part's study as its command would."""
    from studies.__main__ import STUDIES  # noqa: PLC0415  # it names this module

    study: Study = import_module(STUDIES[part.study][0]).Command()
    given = {DATA: str(data), RUN: ""}
    if part.needs is Needs.RUN:
        given[RUN] = str(_shadow_run(data, scale, on_progress))
    if part.needs is Needs.DIRECTIONS:
        _ensure_directions(data, on_progress)
    arguments = list(part.arguments(scale))
    for name, value in given.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    parser = study.create_parser("python -m studies", part.study)
    with_name = partial(_named, part.name, on_progress)
    return study.measure(vars(parser.parse_args(arguments)), with_name)


def _named(
    part: str, on_progress: OnProgress, step: str, done: int, total: int
) -> None:
    on_progress(f"{part}: {step}", done, total)


def _shadow_run(data: Path, scale: float, on_progress: OnProgress) -> int:
    """Return the id of the finished run for the abstention study, asking as needed."""
    model = load_white_box(load_language_model())
    seen = tuple(model.adapter.groups) if model and model.adapter else ()
    suite = open_squad2(
        **SuiteOptions(
            data=data,
            shadow=True,
            seed=0,
            limit=drafted(scale),
            exclude_articles=seen,
            loading=partial(on_progress, "Loading knowledge"),
        )
    )
    return finished_run(suite, on_progress).pk


def _ensure_directions(data: Path, on_progress: OnProgress) -> None:
    """Fit and activate directions if none are active for this model."""
    model = load_closed_book_form().model
    active = Probe.objects.active_for(model.fingerprint)
    if active.filter(kind=ProbeKind.DIRECTIONS).exists():
        return
    trained = train_directions(
        model,
        read_statements([data / _STATEMENTS]),
        DirectionSettings(),
        on_progress=on_progress,
    )
    keep(trained.files, by=None, note="For the headline report.", activate=True)


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _scale(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return number
