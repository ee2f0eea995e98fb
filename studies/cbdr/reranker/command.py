"""The separate gains of CBDR's reranker and gate: the command and its tables."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from kb.embedding.embedder import load_bundled
from probes.reranker.fitting import RerankerSettings
from qa.evaluation.report.tables import TextTable, percent
from qa.inference.policy_models import load_closed_book_form
from qa.management.base import add_reranker_fitting, positive, reranker_fitting, share
from qa.training.boundary import probe_table
from qa.training.held_out import as_text
from qa.training.preferences import WITH_NOTES
from studies.figures import points
from studies.study import Claim, OnProgress, Outcome, Study, file_argument

from .questions import Sizes, parted_questions
from .ranking import Compared
from .study import BASE, TUNED, Results, run_study

NOTES: Final = (
    "Questions are split by article: the probe, the preferences, the thresholds and the "
    "test have articles of their own. In parentheses are 95 % intervals: articles are "
    "resampled, then questions within them, the same ones on both sides of a comparison.",
    "p is that of McNemar's exact test, which treats questions as independent; the interval "
    "resamples articles. Where questions of an article are correlated p is too small: rely on "
    "the interval.",
    "One note is given with a question: the first of the order. An answer is right if it "
    "contains a reference.",
    "The thresholds are those with the best accuracy on the calibration part.",
    "base is the reranker before fitting; if it starts from an embedding model's weights, "
    "its output layer is random.",
)


class Command(Study):
    """`python -m studies cbdr_reranker --data DIR --others FILE ...`."""

    help = (
        "Fit a boundary probe and a reranker on some of SQuAD's articles and measure on "
        "others: the reranker before and after fitting, and the separate gains of the "
        "reranker and the gate, with paired 95 % intervals. Nothing is activated. Exit "
        "code: 0, or 2 on failure."
    )
    writes = ("json", "markdown")

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(parser, "SQuAD 2.0's file, or a directory of data sets.")
        parser.add_argument(
            "--others", type=Path, nargs="+", default=[], metavar="FILE",
            help="JSON Lines of questions that SQuAD's texts hardly ever answer.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=1000,
            help="Questions of SQuAD, over all parts (default 1000).",
        )  # fmt: skip
        parser.add_argument(
            "--notes", type=positive, default=8, help="Notes per question (default 8)."
        )
        parser.add_argument(
            "--margin", type=share, default=0.005, metavar="SHARE",
            help="How far a note must move the confidence to count (default 0.005).",
        )  # fmt: skip
        add_reranker_fitting(parser)

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        form, seed = load_closed_book_form(), options["seed"]
        parted = parted_questions(
            options["data"],
            options["others"],
            Sizes(options["questions"], options["notes"], seed),
            embedder=load_bundled(),
        )
        found = run_study(
            form,
            parted,
            RerankerSettings(**reranker_fitting(options)),
            base=options["base"],
            margin=options["margin"],
            device=settings.MODEL_DEVICE,
            on_progress=on_progress,
        )
        thresholds = ", ".join(
            f"{order}: {'none' if value is None else f'{value:.3f}'}"
            for order, value in found.min_known.items()
        )
        heading = {
            "language model": form.model.name,
            "fingerprint": form.fingerprint[:12],
            "seed": seed,
        }
        return Outcome(
            "CBDR",
            heading,
            list(tables(found)),
            (*NOTES, f"min_known chosen for each order of the notes: {thresholds}."),
            {**heading, **asdict(found)},
            claims=[*claims_of(found)],
        )


def claims_of(results: Results) -> Iterator[Claim]:
    """Yield the gains of the reranker and the gate, alone and together."""
    with_notes = results.probe.get(WITH_NOTES)
    measured = with_notes if isinstance(with_notes, dict) else results.probe
    why = f"AUROC of the boundary probe with notes: {as_text(measured.get('auroc'))}."
    for one in (*results.by_reference, *results.by_shift):
        if one.order == TUNED and one.measure in ("P@1", "P@3"):
            is_by_reference = one in results.by_reference
            what = "contain a reference" if is_by_reference else "raise the confidence"
            yield Claim(
                f"CBDR: reranker, {one.measure} of notes that {what}",
                "Table 1",
                one.difference.value,
                one.difference.interval,
                results.counts["questions, test"],
                why,
            )
    for way in results.ways[1:]:
        yield Claim(
            f"CBDR: {way.name}, accuracy against always retrieving "
            f"(retrieves {percent(way.retrieval_rate)})",
            "Table 3" if way.name.startswith("gate") else "Table 2",
            way.accuracy.value,
            way.accuracy.interval,
            results.counts["questions, test"],
            why,
        )


def tables(results: Results) -> Iterator[TextTable]:
    """Yield the tables: counts, probe, reranker, then the gains."""
    yield TextTable(
        "Counts",
        ("", "count"),
        tuple((name, f"{count:,}") for name, count in results.counts.items()),
    )
    yield probe_table(results.probe)
    before_and_after = "Reranker before and after: notes"
    yield _ranking(
        f"{before_and_after} that raise the model's confidence", results.by_shift
    )
    yield _ranking(f"{before_and_after} that contain a reference", results.by_reference)
    yield TextTable(
        "The gain of the reranker and of the gate, each on its own",
        ("", "retrieves", "accuracy", "gain", "only this right", "only the first", "p"),
        tuple(
            (
                way.name,
                percent(way.retrieval_rate),
                percent(way.accuracy.second),
                points(way.accuracy.value, way.accuracy.interval),
                str(way.mcnemar.only_second),
                str(way.mcnemar.only_first),
                f"{way.mcnemar.p_value:.3f}",
            )
            for way in results.ways
        ),
    )


def _ranking(title: str, measured: Sequence[Compared]) -> TextTable:
    by_order = {(one.order, one.measure): one.difference for one in measured}
    rows = []
    for measure in dict.fromkeys(one.measure for one in measured):
        base, tuned = by_order[BASE, measure], by_order[TUNED, measure]
        rows.append(
            (
                measure,
                percent(tuned.first),
                percent(base.second),
                percent(tuned.second),
                points(tuned.value, tuned.interval),
            )
        )
    columns = ("", "as found", "base", "reranked", "reranked - as found")
    return TextTable(title, columns, tuple(rows))
