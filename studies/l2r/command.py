"""Runs Learn to Refuse's experiments and prints them beside the paper's figures."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError

from accounts.exceptions import UnavailableError
from qa.evaluation.judging import Suite
from qa.evaluation.models import EvaluationRun
from qa.evaluation.report.plots import plot_svg
from qa.evaluation.runs import judged_of
from qa.evaluation.suites.options import SuiteOptions
from qa.exceptions import EvaluationDataError
from qa.management.base import positive, require_directories, write_figures, writing
from studies.runs import finished_run
from studies.study import OnProgress, Outcome, Study, file_argument

from .knowledge import Confidence
from .suites import MULTIPLE_CHOICE, configured_model, open_other, open_truthfulqa
from .tables import (
    FIGURES,
    RATIOS,
    TABLES,
    Runs,
    as_json,
    claims_of,
    enriched_key,
    enriched_table,
    text_table,
)
from .tallies import COMMONSENSEQA, L2R, MC1, MC2, MEDQA, MEDQA_CORPUS, WITHOUT_STEPS

_KNOWLEDGE: Final = ("gold", "enriched")
_Key = tuple[str, float | None]


class Command(Study):
    """`python -m studies l2r --data DIR`."""

    help = (
        "Ask TruthfulQA's MC1 and MC2 against gold knowledge at five ratios, and "
        "CommonsenseQA and MedQA, with all gates in shadow. Print Learn to Refuse's "
        "tables and figures with intervals, beside the paper's numbers. The same "
        "command continues an interrupted run."
    )
    writes = ()

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(parser, "Directory of the data sets.")
        parser.add_argument("--tables", type=_numbers(TABLES), default=(1, 3, 4))
        parser.add_argument("--figures", type=_numbers(FIGURES), default=(5, 6))
        parser.add_argument(
            "--knowledge", choices=_KNOWLEDGE, default=_KNOWLEDGE[0],
            help="Knowledge to ask against: gold answers (TruthfulQA only), or what "
            "the language model writes from the questions alone (Tables 1 to 3 only), "
            "which takes a second or two per question.",
        )  # fmt: skip
        parser.add_argument(
            "--limit", type=positive, metavar="N", help="N questions of each set."
        )
        parser.add_argument(
            "--corpus", type=Path, metavar="PATH", help="Texts for MedQA (Table 2)."
        )
        parser.add_argument(
            "--knowledge-base", default="", metavar="SLUG",
            help="Ask CommonsenseQA and MedQA against this knowledge base (Table 2).",
        )  # fmt: skip
        parser.add_argument(
            "--output", type=Path, metavar="DIR",
            help="Also write l2r.md, l2r.json and the figures to this directory.",
        )  # fmt: skip
        parser.add_argument(
            "--anew", action="store_true", help="Do not reuse earlier runs."
        )

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        require_directories(options["output"])
        try:
            runs = {
                key: finished_run(suite, on_progress, anew=options["anew"])
                for key, suite in _suites(options, on_progress)
            }
        except UnavailableError as error:
            kept = "Results so far are kept: the same command continues from there."
            raise CommandError(f"{error} {kept}", returncode=2) from error
        rows = {key: judged_of(run) for key, run in runs.items()}
        if options["knowledge"] == "enriched":
            tables = [enriched_table(rows)]
        else:
            tables = [TABLES[number](rows) for number in options["tables"]]
            tables += [FIGURES[number](rows) for number in options["figures"]]
        heading = _heading(list(runs.values()), rows, options)
        return Outcome(
            "Learn to Refuse, reproduced",
            heading,
            [text_table(table) for table in tables],
            figures={**heading, "tables": as_json(tables)},
            draw=partial(_draw, rows),
            claims=[*claims_of(rows)],
        )

    def show(self, outcome: Outcome) -> None:
        self.stdout.write(outcome.markdown())

    def write(self, outcome: Outcome, options: Mapping[str, Any]) -> None:
        if directory := options["output"]:
            made = dumps(outcome.figures, indent=2, ensure_ascii=False)
            write_figures(directory / "l2r.json", made)
            write_figures(directory / "l2r.md", outcome.markdown())
            if outcome.draw:
                with writing(directory):
                    outcome.draw(directory)


def _suites(
    options: Mapping[str, Any], on_progress: OnProgress
) -> Iterator[tuple[_Key, Suite]]:
    """Yield the suites that the tables and figures need, with their keys in `Runs`.

    MC1 comes right before MC2, as they share scores.
    """
    common: SuiteOptions = {
        "data": options["data"],
        "limit": options["limit"],
        "seed": options["seed"],
        "shadow": True,
    }
    tables, figures = set(options["tables"]), set(options["figures"])
    if options["knowledge"] == "enriched":
        yield from _enriched(common, tables, on_progress)
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
    for name in (COMMONSENSEQA, MEDQA):
        yield (name, None), MULTIPLE_CHOICE[name](**given)
    if options["corpus"]:
        texts: SuiteOptions = {**common, "knowledge": options["corpus"]}
        yield (MEDQA_CORPUS, None), MULTIPLE_CHOICE[MEDQA_CORPUS](**texts)


def _enriched(
    common: SuiteOptions, tables: Set[int], on_progress: OnProgress
) -> Iterator[tuple[_Key, Suite]]:
    """Yield the suites of the tables with knowledge that the language model wrote."""
    chosen: dict[str, Callable[..., Suite]] = {}
    if tables - {2}:
        chosen[MC1] = partial(open_truthfulqa, several=False)
        chosen[MC2] = partial(open_truthfulqa, several=True)
    if 2 in tables:
        chosen |= {name: partial(open_other, name) for name in (COMMONSENSEQA, MEDQA)}
    for confidence in Confidence:
        for name, make in chosen.items():
            loading = partial(on_progress, f"writing knowledge of {name}")
            suite = make(enriched=confidence, **{**common, "loading": loading})
            yield (enriched_key(name, confidence), None), suite


def _heading(
    runs: Sequence[EvaluationRun], rows: Runs, options: Mapping[str, Any]
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
        "seconds": f"{seconds:.0f}, of which {model:.0f} in the language model",
        **{f"protocol of {run.suite}, {_knowledge(run)}": run.protocol for run in runs},
    }


def _knowledge(run: EvaluationRun) -> str:
    ratio = run.parameters.get("ratio")
    known = run.parameters.get("knowledge_base")
    return f"knowledge {known}" if ratio is None else f"ratio {ratio}"


def _draw(rows: Runs, directory: Path) -> None:
    drawings = {5: "refusals_against_alpha", 6: "precision_recall"}
    for suite in (MC1, MC2):
        for number, name in drawings.items() if (suite, 1.0) in rows else ():
            with suppress(EvaluationDataError):  # these rows have no data for this plot
                svg = plot_svg(name, rows[suite, 1.0], L2R)
                (directory / f"figure-{number}-{suite}.svg").write_bytes(svg)


def _numbers(known: Mapping[int, object]) -> Callable[[str], tuple[int, ...]]:
    def read(text: str) -> tuple[int, ...]:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
        if not set(numbers) <= known.keys():
            names = ", ".join(map(str, known))
            raise argparse.ArgumentTypeError(f"{text} has numbers other than {names}")
        return numbers

    return read
