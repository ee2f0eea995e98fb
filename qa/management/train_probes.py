"""Kinds of `train` whose result is kept in the registry: probes and directions."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from qa.evaluation.report.tables import print_tables
from qa.management import base
from qa.management.progress import Bars

if TYPE_CHECKING:
    from probes.cards import ProbeFiles
    from probes.models import Probe

Parser = argparse.ArgumentParser
# Modules that pull in torch are imported in functions, as --help does not need them.


def _add_probe(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--kind", choices=("abstention", "early", "joint"), default="abstention",
        help="What it reads: the answer's own tokens, the prompt's last one, or all "
        "signals together (default: abstention).",
    )  # fmt: skip
    add(
        "--runs", type=int, nargs="+", default=[], metavar="ID",
        help="Finished evaluations whose answers are used.",
    )  # fmt: skip
    add("--data", type=Path, metavar="FILE", help="A JSON Lines file of answers.")
    add(
        "--reviews", action="store_true",
        help="Use experts' reviews of live answers, except the golden ones.",
    )  # fmt: skip
    add(
        "--any-model", action="store_true",
        help="Also use runs that another language model answered.",
    )  # fmt: skip
    add("--layer", type=int, metavar="BLOCK", help="0-based (default: at two thirds).")
    add(
        "--part", choices=("block", "ffn"), default="block",
        help="The block's output, or its feed-forward network's inner activations.",
    )  # fmt: skip
    add(
        "--network", choices=("lstm", "linear", "mlp"),
        help="Default: lstm for abstention, linear for early.",
    )  # fmt: skip
    _add_fit(parser)


def _train_probe(command: base.Command, options: dict[str, Any]) -> None:
    """Fit a probe that tells right answers from wrong ones on labelled answers."""
    from qa.training.held_out import rows_of  # noqa: PLC0415
    from qa.training.request import carry_out, request_of  # noqa: PLC0415

    request = request_of({k: v for k, v in options.items() if v is not None})
    fitted = replace(request.settings, **base.probe_fitting(options))
    request = replace(request, data=options["data"], settings=fitted)
    with Bars(command.errors) as bars:
        outcome = carry_out(request, on_progress=bars.at)
    metrics, console = outcome.metrics, command.console()
    console.print(
        f"{outcome.count:,} answers, {outcome.right:,} of them right. Measured "
        f"{metrics['measured']}; in brackets bootstrap 95 % intervals."
    )
    for count, why in (
        (outcome.too_long, "do not fit the model's context"),
        (outcome.known, "are about what the model's adapter was fitted on"),
    ):
        if count:
            console.print(f"{count:,} answers {why} and were left out.")
    table = Table("", "AUROC", "AURC", "Brier", "ECE", box=None, pad_edge=False)
    for row in rows_of(str(outcome.probe), metrics):
        table.add_row(*row)
    console.print(table)
    _write(command, outcome.probe, options)


def _add_boundary_probe(parser: Parser) -> None:
    base.add_questions(parser, notes=3)
    parser.add_argument(
        "--layer", type=int, metavar="BLOCK", help="0-based (default: the middle)."
    )
    parser.add_argument(
        "--network", choices=("mlp", "linear"), default="mlp",
        help="One hidden layer, or none (default: mlp).",
    )  # fmt: skip
    _add_fit(parser)


def _train_boundary_probe(command: base.Command, options: dict[str, Any]) -> None:
    """Fit a probe that predicts whether the model answers correctly.

    On labelled questions that it answers without and with each of their notes.
    """
    from probes.abstention.probe import Kind  # noqa: PLC0415
    from qa.training import boundary  # noqa: PLC0415
    from qa.training.labelled_questions import read_questions  # noqa: PLC0415

    fitted = replace(
        boundary.SETTINGS,
        kind=Kind(options["network"]),
        seed=options["seed"],
        **base.probe_fitting(options),
    )
    with Bars(command.errors) as bars:
        outcome = boundary.train_on(
            read_questions(base.get_questions(options)),
            boundary.BoundaryTraining(options["layer"], fitted, options["folds"]),
            notes=options["notes"],
            promote=options["promote"],
            note=options["note"],
            on_progress=bars.at,
        )
    console = command.console()
    console.print(
        f"{outcome.count:,} prompts, {outcome.right:,} of them answered correctly. "
        f"Measured {outcome.metrics['measured']}; in brackets bootstrap 95 % intervals."
    )
    print_tables([boundary.probe_table(outcome.metrics)], (), console)
    _write(command, outcome.probe, options)


def _add_directions(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "true", type=Path, nargs="+", metavar="FILE",
        help="CSV with the columns statement and label; those labelled 1 are read.",
    )  # fmt: skip
    add(
        "--sounding", type=Path, metavar="FILE",
        help="JSON Lines with confident and unconfident, instead of our own.",
    )  # fmt: skip
    add(
        "--method", choices=("mean", "principal"), default="mean",
        help="Mean difference, or the principal component of both signs.",
    )  # fmt: skip
    add("--pairs", type=base.positive, default=512, help="Per trait (default: 512).")
    add("--seed", type=int, default=0, help="Seed of held-out part and pairs.")
    _add_registry(parser)


def _train_directions(command: base.Command, options: dict[str, Any]) -> None:
    """Fit directions of honesty and confidence in each block of the language model.

    Prints the share of held-out pairs that each tells apart.
    """
    from probes.directions.sets import DirectionSettings, Method  # noqa: PLC0415
    from probes.directions.statements import OWN_STATEMENTS  # noqa: PLC0415
    from qa.inference.policy_models import load_closed_book_form  # noqa: PLC0415
    from qa.training.directions import read_statements, train_directions  # noqa: PLC0415
    from qa.training.probe import keep  # noqa: PLC0415

    statements = read_statements(options["true"], options["sounding"] or OWN_STATEMENTS)
    method = Method(options["method"])
    fitted = DirectionSettings(
        pairs=options["pairs"], method=method, seed=options["seed"]
    )
    with Bars(command.errors) as bars:
        trained = train_directions(
            load_closed_book_form().model, statements, fitted, on_progress=bars.at
        )
    promote, note = options["promote"], options["note"]
    probe = keep(trained.files, by=None, note=note, activate=promote)
    directions, console = trained.directions, command.console()
    uses = {"steering": directions.steered, "monitoring": directions.monitored}
    table = Table("block", "honesty", "confidence", "used for", box=None)
    for layer in range(directions.blocks):
        table.add_row(
            str(layer),
            f"{directions.honesty.accuracies[layer]:.3f}",
            f"{directions.confidence.accuracies[layer]:.3f}",
            ", ".join(use for use, layers in uses.items() if layer in layers),
        )
    console.print("Share of held-out pairs whose positive text scores higher:")
    console.print(table)
    if trained.sounding is not None:
        console.print(
            "AUROC of confident-sounding statements against others, without an "
            f"instruction: {trained.sounding:.3f}"
        )
    _write(command, probe, options)


def _add_fit(parser: Parser) -> None:
    add = parser.add_argument
    add("--folds", type=int, default=5, help="Default: 5.")
    add("--seed", type=int, default=0, help="Random seed of folds and fits.")
    base.add_probe_fitting(parser)
    _add_registry(parser)
    add("--json", type=Path, metavar="PATH", help="Also write the figures there.")


def _add_registry(parser: Parser) -> None:
    add = parser.add_argument
    add("--note", default="", help="Comment stored with the result.")
    add("--promote", action="store_true", help="Activate it at once.")
    add("--output", type=Path, metavar="DIR", help="Also write its files there.")


def _write(command: base.Command, probe: "Probe", options: dict[str, Any]) -> None:
    message = f"{probe} (number {probe.pk}) is kept as {probe.state}."
    command.console().print(message)
    files: ProbeFiles = probe.files
    if directory := options["output"]:
        with base.writing(directory):
            files.write(directory)
    if path := options.get("json"):
        base.write_figures(path, dumps(dict(probe.metrics), indent=2))


KINDS: Final[Mapping[str, base.Kind]] = {
    "probe": (_add_probe, _train_probe),
    "boundary_probe": (_add_boundary_probe, _train_boundary_probe),
    "directions": (_add_directions, _train_directions),
}
