"""How good verdicts by past questions are."""

import argparse
from typing import Any

from django.conf import settings

from kb.embedding.embedder import load_embedder
from qa.inference.by_history import VerdictForm
from qa.inference.configured import load_language_model
from qa.inference.label_judge import LabelPair, read_pair
from qa.inference.policy_models import load_closed_book_form
from qa.inference.white_box import load_white_box
from qa.management.base import positive
from studies.study import OnProgress, Outcome, Study, file_argument

from .figures import claims_of, tables_of
from .judging import ask_each, balanced, draw, judge_each, nearest_of
from .on_evidence import (
    draw_on_evidence,
    evidence_claim,
    evidence_tables,
    judge_on_evidence,
)

_TITLE = "Verdicts by past questions"
_INTERVALS = (
    "Intervals are 95 %: Wilson's for accuracies, a bootstrap over questions for all else; "
    "p is McNemar's. A verdict is yes from 0.5 on, the published rule."
)
_NOTES = (
    "A verdict is right if it agrees with what the model did: a question is known if the "
    "model's own answer without notes contained a reference. Retrieval rate is the share of "
    "questions judged as not known.",
    "History: other splits of WebQuestions and NQ-open, other questions of TriviaQA and "
    "PopQA; FreshQA and SelfAware have none of their own.",
    _INTERVALS,
)
_NOTES_ON_EVIDENCE = (
    "SQuAD 2.0: the evidence is the sentence of the question's paragraph that is nearest "
    "to it, and answers if it contains a marked answer; history is of other articles.",
    _INTERVALS,
)


class Command(Study):
    """`python -m studies dh_icl --data DIR`."""

    help = (
        "Print how well the language model predicts which questions it answers correctly "
        "closed-book: without examples, with fixed ones and with past questions, with and "
        "without the correction, for each pair of labels, with paired intervals; or, with "
        "--evidence, whether evidence answers a question. Needs no database. Exit code: "
        "0, or 2 on failure."
    )
    requires_system_checks = []

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(
            parser,
            "Directory of data sets: triviaqa/, nq_open/, webquestions/, popqa/, "
            "freshqa/, selfaware/; with --evidence squad/.",
        )
        parser.add_argument(
            "--evidence", action="store_true",
            help="Judge whether evidence answers, not whether the model knows.",
        )  # fmt: skip
        parser.add_argument(
            "--questions",
            type=positive,
            default=100,
            help="Questions to judge from each set (default 100).",
        )
        parser.add_argument(
            "--balanced", action="store_true",
            help="Judge each set's questions that the model knows, and as many others.",
        )  # fmt: skip
        parser.add_argument(
            "--history",
            type=positive,
            default=400,
            help="Past questions from each source (default 400).",
        )
        parser.add_argument(
            "--labels", nargs="+", default=["true/false", "yes/no", "A/B"],
            metavar="YES/NO",
            help="Pairs of labels; the figures by data set, the claims and --evidence use "
            "the first.",
        )  # fmt: skip

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        pairs = [read_pair(text) for text in options["labels"]]
        measure = _on_evidence if options["evidence"] else _on_self_knowledge
        return measure(options, pairs, on_progress)


def _on_self_knowledge(
    options: dict[str, Any], pairs: list[LabelPair], on_progress: OnProgress
) -> Outcome:
    asked, past = draw(
        options["data"],
        asked=options["questions"],
        history=options["history"],
        seed=options["seed"],
    )
    form, embedder = load_closed_book_form(), load_embedder(settings.EMBEDDING_MODEL)
    history = ask_each(form, past, on_progress, "history")
    questions = ask_each(form, asked, on_progress, "questions")
    if options["balanced"]:
        questions = balanced(questions)
    nearest = nearest_of(
        embedder.encode([each.question for each in questions]),
        embedder.encode([each.question for each in history]),
    )
    judgements = judge_each(form.model, questions, history, nearest, pairs, on_progress)
    heading = {
        "questions": len(questions),
        "history": f"{len(history)}, {sum(h.as_history for h in history)} known",
        "language model": form.model.name,
        "seed": options["seed"],
    }
    return Outcome(
        _TITLE,
        heading,
        tables_of(judgements),
        _NOTES,
        claims=tuple(claims_of(judgements)),
    )


def _on_evidence(
    options: dict[str, Any], pairs: list[LabelPair], on_progress: OnProgress
) -> Outcome:
    model = load_closed_book_form().model
    embedder = load_embedder(settings.EMBEDDING_MODEL)
    language_model = load_language_model()
    white_box = load_white_box(language_model)
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
    verdicts = judge_on_evidence(
        language_model, form, embedder, asked, history, on_progress
    )
    heading = {
        "questions": len(asked),
        "history": len(history),
        "language model": model.name,
        "seed": options["seed"],
    }
    return Outcome(
        _TITLE,
        heading,
        evidence_tables(verdicts, pairs[0]),
        _NOTES_ON_EVIDENCE,
        claims=[evidence_claim(verdicts)],
    )
