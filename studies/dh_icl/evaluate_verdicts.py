"""Print what verdicts by past questions are worth."""

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError
from kb.embedding.embedder import load_embedder
from qa.evaluation.report.tables import TextTable, markdown_of, print_tables
from qa.inference.configured import load_language_model
from qa.inference.label_judge import LabelPair, read_pair
from qa.inference.policy_models import load_closed_book_form
from qa.inference.verdict_by_history import VerdictForm
from qa.inference.white_box import white_box_of
from qa.management.base import positive, require_files, write_figures
from qa.management.progress import Bars
from studies.dh_icl.figures import tables_of
from studies.dh_icl.judging import ask_each, balanced, draw, judge_each, nearest_of
from studies.dh_icl.on_evidence import (
    draw_on_evidence,
    evidence_tables,
    judge_on_evidence,
)

_INTERVALS = (
    "Intervals are 95 %, of accuracies Wilson's, of all else by bootstrap over questions; "
    "p is McNemar's. A verdict is yes from 0.5 on, the published rule."
)
_NOTES = (
    "Right is the verdict that says what the model did: known where its own answer "
    "without notes held a reference. A question is retrieved for where it is not known.",
    "History: other splits of WebQuestions and NQ-open, other questions of TriviaQA and "
    "PopQA; FreshQA and SelfAware have none of their own.",
    _INTERVALS,
)
_NOTES_ON_EVIDENCE = (
    "SQuAD 2.0: the evidence is the sentence of the question's paragraph that is nearest "
    "to it, and answers where a marked answer stands in it; history is of other articles.",
    _INTERVALS,
)


class Command(BaseCommand):
    """`manage.py evaluate_verdicts --data DIR`."""

    help = (
        "Print how well the language model tells which questions it answers rightly by "
        "itself: without examples, with fixed ones and with past questions, with and "
        "without the correction, for each pair of labels, with paired intervals; or, with "
        "--evidence, whether evidence answers a question. Needs no database. Exit code: "
        "0, or 2 if it can't be made."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--data", type=Path, required=True, metavar="DIR",
            help="Directory of data sets: triviaqa/, nq_open/, webquestions/, popqa/, "
            "freshqa/, selfaware/; with --evidence squad/.",
        )  # fmt: skip
        parser.add_argument(
            "--evidence", action="store_true",
            help="Judge whether evidence answers instead of whether the model knows.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=100, help="Of each set, asked."
        )
        parser.add_argument(
            "--balanced", action="store_true",
            help="Judge of each set those that the model knows, and as many others.",
        )  # fmt: skip
        parser.add_argument(
            "--history", type=positive, default=400, help="Of each source, past."
        )
        parser.add_argument(
            "--labels", nargs="+", default=["true/false", "yes/no", "A/B"],
            metavar="YES/NO", help="Pairs of labels; details are told of the first.",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=0, help="Of what is drawn.")
        parser.add_argument(
            "--markdown", type=Path, metavar="PATH", help="Also write them as Markdown."
        )

    def handle(
        self,
        *_arguments: object,
        **options: Any,  # noqa: ANN401  # Django's
    ) -> None:
        console = Console(file=self.stdout, highlight=False, soft_wrap=True)  # type: ignore[arg-type]  # a text stream but by name
        make = self._on_evidence if options["evidence"] else self._on_own_knowledge
        notes = _NOTES_ON_EVIDENCE if options["evidence"] else _NOTES
        require_files(options["markdown"])
        try:
            pairs = [read_pair(text) for text in options["labels"]]
            heading, tables = make(options, pairs)
        except (NescioError, OSError) as error:
            raise CommandError(str(error), returncode=2) from error
        print_tables(tables, notes, console)
        if path := options["markdown"]:
            heading |= {"seed": options["seed"]}
            text = markdown_of("Verdicts by past questions", heading, tables, notes)
            write_figures(path, text)

    def _on_own_knowledge(
        self, options: dict[str, Any], pairs: list[LabelPair]
    ) -> tuple[dict[str, object], tuple[TextTable, ...]]:
        asked, past = draw(
            options["data"],
            asked=options["questions"],
            history=options["history"],
            seed=options["seed"],
        )
        form, embedder = (
            load_closed_book_form(),
            load_embedder(settings.EMBEDDING_MODEL),
        )
        with Bars(self._progress()) as bars:
            history = ask_each(form, past, bars.at, "history")
            questions = ask_each(form, asked, bars.at, "questions")
            if options["balanced"]:
                questions = balanced(questions)
            nearest = nearest_of(
                embedder.encode([each.question for each in questions]),
                embedder.encode([each.question for each in history]),
            )
            judgements = judge_each(
                form.model, questions, history, nearest, pairs, bars.at
            )
        heading: dict[str, object] = {
            "questions": len(questions),
            "history": f"{len(history)}, {sum(h.as_history for h in history)} known",
            "language model": form.model.name,
        }
        return heading, tables_of(judgements)

    def _on_evidence(
        self, options: dict[str, Any], pairs: list[LabelPair]
    ) -> tuple[dict[str, object], tuple[TextTable, ...]]:
        model = load_closed_book_form().model
        embedder = load_embedder(settings.EMBEDDING_MODEL)
        language_model = load_language_model()
        white_box = white_box_of(language_model)
        adapter = white_box.adapter if white_box else None
        asked, history = draw_on_evidence(
            options["data"],
            embedder,
            asked=options["questions"],
            history=options["history"],
            seed=options["seed"],
            without=adapter.groups if adapter else (),
        )
        form = VerdictForm(model, pairs[0])
        with Bars(self._progress()) as bars:
            verdicts = judge_on_evidence(
                language_model, form, embedder, asked, history, bars.at
            )
        heading: dict[str, object] = {
            "questions": len(asked),
            "history": len(history),
            "language model": model.name,
        }
        return heading, evidence_tables(verdicts, pairs[0])

    def _progress(self) -> Console:
        return Console(file=self.stderr, highlight=False)  # type: ignore[arg-type]  # a text stream but by name
