"""Run Learn to Refuse's experiments and print them beside the paper's figures."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError, UnavailableError
from qa.evaluation.judging import Judged, Suite
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.plots import precision_recall_svg, refusals_against_alpha_svg
from qa.evaluation.runs import begin, finish, go_on, judged_of
from qa.evaluation.suites.options import SuiteOptions
from qa.exceptions import EvaluationDataError
from qa.management.base import positive
from qa.management.progress import Bar
from studies.l2r.knowledge import Confidence
from studies.l2r.suites import MULTIPLE_CHOICE, configured_model, open_truthfulqa
from studies.l2r.tables import (
    FIGURES,
    MC1,
    MC2,
    RATIOS,
    TABLES,
    WITHOUT_STEPS,
    Table,
    as_json,
    as_markdown,
    enriched_key,
    enriched_table,
)
from studies.l2r.tallies import L2R

_KNOWLEDGE = ("gold", "enriched")
_OTHERS = ("commonsenseqa", "medqa")
_CORPUS = "medqa-corpus"


class Command(BaseCommand):
    """`manage.py reproduce_l2r --data DIR`."""

    help = (
        "Ask TruthfulQA's MC1 and MC2 against gold knowledge at five ratios, and "
        "CommonsenseQA and MedQA, all gates in shadow, and print Learn to Refuse's "
        "tables and figures with intervals beside the paper's numbers. A run that is "
        "broken off goes on with the same command."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, metavar="DIR")
        parser.add_argument("--tables", type=_numbers(TABLES), default=(1, 3, 4))
        parser.add_argument("--figures", type=_numbers(FIGURES), default=(5, 6))
        parser.add_argument(
            "--knowledge",
            choices=_KNOWLEDGE,
            default=_KNOWLEDGE[0],
            help="What TruthfulQA is asked against: gold answers, or what the language "
            "model writes from the questions alone, which takes it a second or two "
            "for each. Tables 1 and 3 alone are of the latter.",
        )
        parser.add_argument(
            "--limit", type=positive, metavar="N", help="N questions of each set."
        )
        parser.add_argument(
            "--seed", type=int, default=0, help="Of the options' order."
        )
        parser.add_argument(
            "--corpus", type=Path, metavar="PATH", help="Texts for MedQA (Table 2)."
        )
        parser.add_argument(
            "--knowledge-base",
            default="",
            metavar="SLUG",
            help="Ask CommonsenseQA and MedQA against this one (Table 2).",
        )
        parser.add_argument("--output", type=Path, metavar="DIR")
        parser.add_argument(
            "--anew", action="store_true", help="Use no run that was made before."
        )

    def handle(self, **options: Any) -> None:  # noqa: ANN401  # as declared
        errors = Console(file=self.stderr)  # type: ignore[arg-type]  # a text stream but by name
        try:
            runs = {
                key: _run(suite, errors, anew=options["anew"])
                for key, suite in _suites(options, errors)
            }
        except UnavailableError as error:
            kept = "What was asked is kept: the same command goes on with it."
            raise CommandError(f"{error} {kept}", returncode=2) from error
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error
        rows = {key: judged_of(run) for key, run in runs.items()}
        if options["knowledge"] == "enriched":
            tables = [enriched_table(rows)]
        else:
            tables = [TABLES[number](rows) for number in options["tables"]]
            tables += [FIGURES[number](rows) for number in options["figures"]]
        heading = _heading(list(runs.values()), rows, options)
        self.stdout.write(as_markdown(tables, heading))
        if options["output"]:
            _write(options["output"], tables, heading, rows)


def _suites(
    options: Mapping[str, Any], errors: Console
) -> Iterator[tuple[tuple[str, float | None], Suite]]:
    """Yield the suites that the tables and figures need, by the key of `Runs`.

    MC1 and MC2 share their work.
    """
    common: SuiteOptions = {
        "data": options["data"],
        "limit": options["limit"],
        "seed": options["seed"],
        "shadow": True,
    }
    tables, figures = set(options["tables"]), set(options["figures"])
    if options["knowledge"] == "enriched":
        yield from _enriched(common, errors)
        return
    ratios = RATIOS if 4 in tables else RATIOS[:1] if tables & {1, 3} or figures else ()
    for ratio in ratios:
        for several in (False, True):
            suite = open_truthfulqa(several=several, ratio=ratio, **common)
            yield (suite.name, ratio), suite
    if 3 in tables and settings.LANGUAGE_SERVER_URL:
        for several in (False, True):
            model = partial(configured_model, steps=False)
            suite = open_truthfulqa(several=several, model=model, **common)
            yield (f"{suite.name} {WITHOUT_STEPS}", 1.0), suite
    if 2 not in tables:
        return
    given: SuiteOptions = {**common, "knowledge_base": options["knowledge_base"]}
    for name in _OTHERS:
        yield (name, None), MULTIPLE_CHOICE[name](**given)
    if options["corpus"]:
        texts: SuiteOptions = {**common, "knowledge": options["corpus"]}
        yield (_CORPUS, None), MULTIPLE_CHOICE[_CORPUS](**texts)


def _enriched(
    common: SuiteOptions, errors: Console
) -> Iterator[tuple[tuple[str, float | None], Suite]]:
    """Yield TruthfulQA's two tasks with knowledge that the language model wrote."""
    for confidence in Confidence:
        for several in (False, True):
            with Bar("writing knowledge", errors) as bar:
                told: SuiteOptions = {**common, "loading": bar.at}
                suite = open_truthfulqa(several=several, enriched=confidence, **told)
            yield (enriched_key(suite.name, confidence), None), suite


def _run(suite: Suite, errors: Console, *, anew: bool) -> EvaluationRun:
    """Return the finished run of a suite: one that is there, or gone on with, or new."""
    run = begin(suite, anew=anew)
    finished = EvaluationRun.objects.filter(
        key=run.key, state=EvaluationRun.State.FINISHED
    ).first()
    done = run.results.count()
    if finished and not done and not anew:
        run.delete()
        return finished
    label = f"{suite.name} {suite.parameters.get('ratio') or ''}"
    with Bar(label, errors) as bar:
        bar.at(done, run.total)
        for number, _ in enumerate(go_on(run, suite), start=done + 1):
            bar.at(number, run.total)
    return finish(run)


def _heading(
    runs: Sequence[EvaluationRun],
    rows: Mapping[tuple[str, float | None], Sequence[Judged]],
    options: Mapping[str, Any],
) -> dict[str, object]:
    judged = [row for part in rows.values() for row in part]
    seconds = sum(row.milliseconds for row in judged) / 1000
    model = sum(row.model_milliseconds for row in judged) / 1000
    return {
        "language model": runs[0].language_model if runs else "",
        "embedder": runs[0].embedder if runs else "",
        "alpha": f"{L2R.alpha:.4f} on the Euclidean distance, {L2R.alpha**2:.2f} squared",
        "seed of the options' order": options["seed"],
        "questions asked": len(judged),
        "seconds": f"{seconds:.0f}, of them {model:.0f} in the language model",
        **{f"protocol of {run.suite}, {_asked(run)}": run.protocol for run in runs},
    }


def _asked(run: EvaluationRun) -> str:
    ratio = run.parameters.get("ratio")
    known = run.parameters.get("knowledge_base")
    return f"knowledge {known}" if ratio is None else f"ratio {ratio}"


def _write(
    directory: Path,
    tables: Sequence[Table],
    heading: Mapping[str, object],
    rows: Mapping[tuple[str, float | None], Sequence[Judged]],
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    made = dumps(as_json(tables, heading), indent=2, ensure_ascii=False)
    (directory / "l2r.json").write_text(f"{made}\n", encoding="utf-8")
    (directory / "l2r.md").write_text(as_markdown(tables, heading), encoding="utf-8")
    for suite in (MC1, MC2):
        asked = rows.get((suite, 1.0))
        if not asked:
            continue
        _draw(directory / f"figure-5-{suite}.svg", partial(_figure_5, asked))
        _draw(directory / f"figure-6-{suite}.svg", partial(precision_recall_svg, asked))


def _figure_5(rows: Sequence[Judged]) -> bytes:
    return refusals_against_alpha_svg(rows, policy=L2R)


def _draw(file: Path, draw: Callable[[], bytes]) -> None:
    try:
        file.write_bytes(draw())
    except EvaluationDataError:
        return  # these rows hold nothing of this plot


def _numbers(known: Mapping[int, object]) -> Any:  # noqa: ANN401  # as argparse takes it
    def read(text: str) -> tuple[int, ...]:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
        if not set(numbers) <= known.keys():
            names = ", ".join(map(str, known))
            raise argparse.ArgumentTypeError(f"{text} is not of {names}")
        return numbers

    return read
