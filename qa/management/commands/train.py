"""`manage.py train KIND`: fit a probe, directions, an adapter, a verifier or a reranker."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from rich.table import Table

from qa.evaluation.report.tables import print_tables
from qa.management import base
from qa.management.progress import Bars

if TYPE_CHECKING:
    from probes.cards import ProbeFiles
    from probes.models import Probe

Parser = argparse.ArgumentParser
# What is fitted pulls in torch, which `--help` does without: imports stand in functions.


class Command(base.KindsCommand):
    help = (
        "Fit what works beside the language model, and print what it is worth on what no "
        "fit saw. What was read of answers is kept: a training that is broken off goes "
        "on from there. Exit code: 0, or 2 if it can't be trained."
    )


def _add_probe(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--kind", choices=("abstention", "early", "joint"), default="abstention",
        help="What it reads: the answer's own tokens, the prompt's last one, or all "
        "signals together (default: abstention).",
    )  # fmt: skip
    add(
        "--runs", type=int, nargs="+", default=[], metavar="ID",
        help="Finished evaluations whose answers are taken.",
    )  # fmt: skip
    add("--data", type=Path, metavar="FILE", help="A JSON Lines file of answers.")
    add(
        "--reviews", action="store_true",
        help="Take experts' reviews of live answers, but for the golden ones.",
    )  # fmt: skip
    add(
        "--any-model", action="store_true",
        help="Take runs that another language model answered, too.",
    )  # fmt: skip
    add("--layer", type=int, metavar="BLOCK", help="0-based (default: at two thirds).")
    add(
        "--part", choices=("block", "ffn"), default="block",
        help="The block's output, or what its feed-forward part holds inside.",
    )  # fmt: skip
    add(
        "--network", choices=("lstm", "linear", "mlp"),
        help="Default: lstm for abstention, linear for early.",
    )  # fmt: skip
    _add_fit(parser)


def _train_probe(command: base.Command, options: dict[str, Any]) -> None:
    """A probe that tells right answers from wrong ones, fitted on labelled answers."""
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
    """A probe that tells beforehand whether the model answers rightly.

    Fitted on labelled questions that it answers without and with each of their notes.
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
        f"{outcome.count:,} prompts, {outcome.right:,} of them answered rightly. "
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
    add(
        "--pairs", type=base.positive, default=512, help="Of each trait (default: 512)."
    )
    add("--seed", type=int, default=0, help="Of what is held out, and of the pairs.")
    _add_registry(parser)


def _train_directions(command: base.Command, options: dict[str, Any]) -> None:
    """Directions of honesty and confidence in each block of the language model.

    With the share of held-out pairs that each tells apart.
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
    console.print("Share of held-out pairs whose positive text lies further along:")
    console.print(table)
    if trained.sounding is not None:
        console.print(
            "AUROC of confident-sounding statements against others, without an "
            f"instruction: {trained.sounding:.3f}"
        )
    _write(command, probe, options)


def _add_adapter(parser: Parser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="PATH")
    add("--output", type=Path, required=True, metavar="DIR")
    add("--model", default="", metavar="NAME", help="Not the one in the settings.")
    add("--articles", nargs="+", default=(), help="Learn from these alone.")
    add("--exclude-articles", nargs="+", default=(), help="From all but these.")
    add("--rank", type=int, default=16)
    add("--epochs", type=int, default=1)
    add("--batch", type=int, default=8)
    add("--learning-rate", type=float, default=5e-4)
    add(
        "--answerable", type=float, default=0.5,
        help="Share of the examples that have an answer, more than 0, less than 1.",
    )  # fmt: skip
    add("--limit", type=int, metavar="N", help="N examples.")
    add("--seed", type=int, default=0)
    add("--threads", type=int, default=os.cpu_count() or 1, help="All by default.")


def _train_adapter(command: base.Command, options: dict[str, Any]) -> None:
    """A low-rank adapter of the language model, fitted on questions like SQuAD 2.0's.

    With the notes that the retriever finds; NESCIO_LANGUAGE_ADAPTER names its directory
    afterwards. Measure it on articles that it never saw: evaluate squad2
    --exclude-articles.
    """
    from probes.adapter.fitting import AdapterSettings  # noqa: PLC0415
    from qa.training.adapter import AdapterTraining, train_adapter  # noqa: PLC0415

    if not 0 < options["answerable"] < 1:
        msg = f"--answerable {options['answerable']} is not between 0 and 1."
        raise CommandError(msg, returncode=2)
    given = {name: options[name] for name in ("data", "answerable", "limit", "threads")}
    fitted = ("rank", "learning_rate", "batch", "epochs", "seed")
    training = AdapterTraining(
        **given,
        articles=tuple(options["articles"]),
        exclude_articles=tuple(options["exclude_articles"]),
        settings=AdapterSettings(
            scale=2.0 * options["rank"], **{name: options[name] for name in fitted}
        ),
    )
    model, output = options["model"] or settings.LANGUAGE_MODEL, options["output"]
    with Bars(command.errors) as bars:
        card = train_adapter(model, training, output, on_progress=bars.at)
    figures = ", ".join(f"{name} {value:g}" for name, value in card.metrics.items())
    command.stdout.write(
        f"{output}: {figures}; {len(card.groups)} articles, weights "
        f"{card.weights_sha256[:12]}."
    )


def _add_reranker(parser: Parser) -> None:
    add = parser.add_argument
    add("files", type=Path, nargs="+", metavar="FILE", help="Preferences.")
    add(
        "--held-out", type=Path, nargs="+", default=[], metavar="FILE",
        help="Preferences that stop the fit (default: those of every eighth question).",
    )  # fmt: skip
    add("--output", type=Path, required=True, metavar="DIR", help="For its files.")
    add("--seed", type=int, default=0, help="Of all that is drawn.")
    base.add_reranker_fitting(parser)


def _train_reranker(command: base.Command, options: dict[str, Any]) -> None:
    """A cross-encoder, fine-tuned with InfoNCE on what make_preferences wrote.

    Stopped by the ranking of held-out questions; NESCIO_RERANKER names its directory
    afterwards.
    """
    from probes.reranker.fitting import RerankerSettings  # noqa: PLC0415
    from probes.reranker.preferences import read_preferences  # noqa: PLC0415
    from qa.training.preferences import train_reranker  # noqa: PLC0415

    try:
        with Bars(command.errors) as bars:
            card = train_reranker(
                read_preferences(*options["files"]),
                read_preferences(*options["held_out"]),
                options["output"],
                base=options["base"],
                fitting=replace(RerankerSettings(), **base.reranker_fitting(options)),
                on_step=lambda step: bars.at("Fitting", step.number, step.total),
            )
    except OSError as error:
        raise CommandError(str(error), returncode=2) from error
    metrics = card.metrics
    command.stdout.write(
        f"Fitted on {card.sizes['preferences']:,} preferences. MRR@10 on "
        f"{card.sizes['held_out']:,} held-out ones, which stopped it: "
        f"{metrics['before']:.3f} before, {metrics['mrr@10']:.3f} after. Written to "
        f"{options['output']}; set NESCIO_RERANKER to it."
    )


def _add_verifier(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--data", type=Path, required=True, metavar="DIR",
        help="Directory below which the public files lie.",
    )  # fmt: skip
    add("--output", type=Path, required=True, metavar="DIR", help="For its files.")
    add(
        "--articles", nargs="+", required=True, metavar="TITLE",
        help="Of SQuAD 2.0, those to learn from; the others stay unseen.",
    )  # fmt: skip
    add("--epochs", type=base.positive, default=1)
    add("--learning-rate", type=float, default=5e-4, help="Of the nets.")
    add("--upper-rate", type=float, default=1e-4, help="Of the embedder's layers.")
    add(
        "--tuned", type=int, choices=range(6), default=2, metavar="N",
        help="How many of the embedder's last layers are fitted too (default: 2); 0 "
        "takes a third of the time.",
    )  # fmt: skip
    add(
        "--share", type=float, default=0.35,
        help="Of the public questions, on which nets and layers are fitted (default: 0.35).",
    )  # fmt: skip
    add(
        "--cross-epochs", type=float, default=0.3,
        help="Of the cross-encoder, on all questions (default: 0.3, which takes two hours on "
        "two cores; 2 on a GPU); 0 leaves it as it is.",
    )  # fmt: skip
    add("--repeats", type=base.positive, default=2, help="Of our own questions.")
    add(
        "--exchanged", type=float, default=0.3,
        help="Share of the public questions that are asked with a name, a number or another "
        "word exchanged, too, so that nothing answers them (default: 0.3).",
    )  # fmt: skip
    add(
        "--begin-from", type=Path, metavar="DIR",
        help="A verifier to fit further, instead of a new one.",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="Of all that is drawn.")


def _train_verifier(command: base.Command, options: dict[str, Any]) -> None:
    """The verifier, which tells whether an entry answers a question.

    Nets on the bundled embedder's token states, fitted on public questions and on ours
    about invented organisations; NESCIO_VERIFIER names its directory afterwards.
    """
    from probes.verifier.fitting import VerifierSettings  # noqa: PLC0415
    from qa.training.verifier import (  # noqa: PLC0415
        VerifierTraining,
        read_public,
        train_verifier,
    )
    from qa.training.verifier_desks import read_support_desks  # noqa: PLC0415

    fitted = ("epochs", "learning_rate", "upper_rate", "seed")
    training = VerifierTraining(
        data=options["data"],
        articles=tuple(options["articles"]),
        tuned=options["tuned"],
        share=options["share"],
        repeats=options["repeats"],
        exchanged=options["exchanged"],
        begin_from=options["begin_from"],
        settings=VerifierSettings(**{name: options[name] for name in fitted}),
    )
    cross = replace(training.cross, epochs=options["cross_epochs"])
    training = replace(training, cross=cross)
    with Bars(command.errors) as bars:
        card = train_verifier(
            training,
            read_public(training),
            read_support_desks(),
            options["output"],
            on_progress=bars.at,
        )
    figures = ", ".join(f"{name} {value:.3f}" for name, value in card.metrics.items())
    command.stdout.write(
        f"On organisations that no fit saw: {figures}. Written to {options['output']}; "
        "set NESCIO_VERIFIER to it."
    )


def _add_fit(parser: Parser) -> None:
    add = parser.add_argument
    add("--folds", type=int, default=5, help="Default: 5.")
    add("--seed", type=int, default=0, help="Of folds and fits.")
    base.add_probe_fitting(parser)
    _add_registry(parser)
    add("--json", type=Path, metavar="PATH", help="Also write the figures there.")


def _add_registry(parser: Parser) -> None:
    add = parser.add_argument
    add("--note", default="", help="Kept with what was fitted.")
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
    "adapter": (_add_adapter, _train_adapter),
    "verifier": (_add_verifier, _train_verifier),
    "reranker": (_add_reranker, _train_reranker),
}
Command.kinds = KINDS
