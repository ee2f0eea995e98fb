"""Kinds of `train` that write a directory, which a setting then names."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError

from qa.management import base
from qa.management.progress import Bars

Parser = argparse.ArgumentParser
# Modules that pull in torch are imported in functions, as --help does not need them.


def _add_adapter(parser: Parser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="PATH")
    add("--output", type=Path, required=True, metavar="DIR")
    add("--model", default="", metavar="NAME", help="Default: the one in the settings.")
    add("--articles", nargs="+", default=(), help="Learn from these only.")
    add("--exclude-articles", nargs="+", default=(), help="Learn from all but these.")
    add("--rank", type=int, default=16)
    add("--epochs", type=int, default=1)
    add("--batch", type=int, default=8)
    add("--learning-rate", type=float, default=5e-4)
    add(
        "--answerable", type=float, default=0.5,
        help="Share of the examples that have an answer, more than 0, less than 1.",
    )  # fmt: skip
    add("--limit", type=int, metavar="N", help="Use N examples.")
    add("--seed", type=int, default=0)
    add("--threads", type=int, default=os.cpu_count() or 1, help="Default: all cores.")


def _train_adapter(command: base.Command, options: dict[str, Any]) -> None:
    """Fit a low-rank adapter of the language model on questions like SQuAD 2.0's.

    Its prompts contain the notes that the retriever finds. Set NESCIO_LANGUAGE_ADAPTER
    to its directory afterwards, and measure it on articles that it never saw: evaluate
    squad2 --exclude-articles.
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
        help="Preferences that decide when to stop (default: every eighth question's).",
    )  # fmt: skip
    add("--output", type=Path, required=True, metavar="DIR", help="Directory to write.")
    add("--seed", type=int, default=0, help="Random seed.")
    base.add_reranker_fitting(parser)


def _train_reranker(command: base.Command, options: dict[str, Any]) -> None:
    """Fine-tune a cross-encoder with InfoNCE on the preferences of make_preferences.

    The ranking of held-out questions decides when to stop. Set NESCIO_RERANKER to its
    directory afterwards.
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
        f"{card.sizes['held_out']:,} held-out ones, which decided when to stop: "
        f"{metrics['before']:.3f} before, {metrics['mrr@10']:.3f} after. Written to "
        f"{options['output']}; set NESCIO_RERANKER to it."
    )


def _add_verifier(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--data", type=Path, required=True, metavar="DIR",
        help="Directory that contains the public data sets.",
    )  # fmt: skip
    add("--output", type=Path, required=True, metavar="DIR", help="Directory to write.")
    add(
        "--articles", nargs="+", required=True, metavar="TITLE",
        help="SQuAD 2.0 articles to learn from; the others stay unseen.",
    )  # fmt: skip
    add("--epochs", type=base.positive, default=1)
    add("--learning-rate", type=float, default=5e-4, help="For the nets.")
    add("--upper-rate", type=float, default=1e-4, help="For the embedder's layers.")
    add(
        "--tuned", type=int, choices=range(6), default=2, metavar="N",
        help="How many of the embedder's last layers are fitted too (default: 2); 0 "
        "takes a third of the time.",
    )  # fmt: skip
    add(
        "--share", type=float, default=0.35,
        help="Share of the public questions that nets and layers are fitted on "
        "(default: 0.35).",
    )  # fmt: skip
    add(
        "--cross-epochs", type=float, default=0.3,
        help="Epochs of the cross-encoder, on all questions (default: 0.3, which "
        "takes two hours on two cores; use 2 on a GPU); 0 leaves it unchanged.",
    )  # fmt: skip
    add("--repeats", type=base.positive, default=2, help="Repeats of own questions.")
    add(
        "--exchanged", type=float, default=0.3,
        help="Share of the public questions that are also asked with a name, a "
        "number or another word exchanged, so that nothing answers them (default: "
        "0.3).",
    )  # fmt: skip
    add(
        "--begin-from", type=Path, metavar="DIR",
        help="A verifier to fit further, instead of a new one.",
    )  # fmt: skip
    add("--seed", type=int, default=0, help="Random seed.")


def _train_verifier(command: base.Command, options: dict[str, Any]) -> None:
    """Fit the verifier, which decides whether an entry answers a question.

    Nets on the bundled embedder's token states, fitted on public questions and on ours
    about invented organisations. Set NESCIO_VERIFIER to its directory afterwards.
    """
    from probes.verifier.fitting import VerifierSettings  # noqa: PLC0415
    from qa.training.verifier import VerifierTraining, read_public, train_verifier  # noqa: PLC0415
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
        f"On unseen organisations: {figures}. Written to {options['output']}; "
        "set NESCIO_VERIFIER to it."
    )


KINDS: Final[Mapping[str, base.Kind]] = {
    "adapter": (_add_adapter, _train_adapter),
    "verifier": (_add_verifier, _train_verifier),
    "reranker": (_add_reranker, _train_reranker),
}
