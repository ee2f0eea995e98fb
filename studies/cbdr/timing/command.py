"""Comparison of deciders of when to retrieve; each question is asked once."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from kb.embedding.embedder import load_embedder
from qa.answers.sources import KnowledgeRetriever, evidence_scope
from qa.evaluation.knowledge import asked_of, evaluation_user
from qa.inference.by_history import SelfKnowledgeByHistory
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.inference.monitored_writer import monitored_writer
from qa.inference.policy_models import history_form, load_closed_book_form
from qa.management.base import positive, share
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.policies.services import active_policy
from studies.study import (
    OnProgress,
    Outcome,
    Study,
    file_argument,
    within_argument,
)

from .asking import TOP_K, Asker, Record, Row
from .build import CBDR, CTRLA, DECIDERS, DH_ICL, LOG_PROBABILITY, NEVER, build_report
from .deciders import (
    SelfKnowledgeByMonitor,
    TaughtHistory,
    Undecided,
    prompts_of,
    taught_probe,
    with_notes_too,
)
from .knowledge import ensure_comparison_knowledge, protocol_of, sources_of
from .outcomes import outcomes_of
from .questions import SETS, Part, Sizes, TimedQuestion, select
from .tables import claims_of, notes, tables, write_plots

_RECORD: Final = Path("evaluation") / "retrieval-timing.jsonl"
_HEADING: Final = ("language_model", "sets", "calibration", "test", "seed")
_COSTED_EACH: Final = 8


class Command(Study):
    """`python -m studies cbdr_timing --data DIR`."""

    help = (
        "Print retrieval rate, accuracy and decision cost of each way of deciding when "
        "to retrieve, on seeded questions of public data sets; the knowledge base has an "
        "entry for a share of them. Every question is asked once and recorded; an "
        "interrupted run continues from there. Exit code: 0, or 2 on failure."
    )
    writes = ("json", "markdown", "plots")

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(
            parser, "Directory of the data sets, each in a directory of its own name."
        )
        parser.add_argument(
            "--sets", nargs="+", choices=SETS, default=SETS, metavar="SET",
            help=f"Data sets: {', '.join(SETS)}; all by default.",
        )  # fmt: skip
        parser.add_argument(
            "--deciders", nargs="+", choices=DECIDERS, default=DECIDERS, metavar="NAME",
            help=f"Besides never and always: {', '.join(DECIDERS)}; all by default.",
        )  # fmt: skip
        parser.add_argument(
            "--questions", type=positive, default=200, metavar="N",
            help="Questions of each set; half of them choose thresholds (default 200).",
        )  # fmt: skip
        parser.add_argument(
            "--first", type=positive, metavar="N",
            help="For now, ask only N of each set to choose thresholds and N to test; "
            "the same command with a larger N continues from there.",
        )  # fmt: skip
        parser.add_argument(
            "--teaching", type=positive, default=500, metavar="N",
            help="Other questions of each open-domain set that deciders learn from "
            "(default 500).",
        )  # fmt: skip
        parser.add_argument(
            "--helped", type=share, default=0.5, metavar="SHARE",
            help="Share of the answerable questions that have an entry (default 0.5).",
        )  # fmt: skip
        within_argument(parser)
        parser.add_argument(
            "--record", type=Path, metavar="PATH",
            help="File that records the answers (default: under the variable directory).",
        )  # fmt: skip

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        figures = compare_retrieval(options, on_progress)
        return Outcome(
            "When to retrieve",
            {name: figures[name] for name in _HEADING},
            list(tables(figures)),
            notes(figures),
            figures,
            partial(write_plots, figures),
            [*claims_of(figures)],
        )


def compare_retrieval(
    options: Mapping[str, Any], on_progress: OnProgress
) -> dict[str, Any]:
    """Ask what is not recorded yet, and return all figures, ready for JSON."""
    sizes = Sizes(
        asked=options["questions"],
        teaching=options["teaching"],
        helped=options["helped"],
        seed=options["seed"],
    )
    path = options["record"] or settings.PLACES.var / _RECORD
    selection = select(options["data"], options["sets"], sizes)
    knowledge_base = ensure_comparison_knowledge(
        options["data"],
        selection.questions,
        loading=partial(on_progress, "Loading knowledge"),
    )
    form = load_closed_book_form()
    policy = active_policy(knowledge_base).as_value()
    if CTRLA in options["deciders"]:
        monitored_writer()  # fails now rather than after an hour of asking
    record = Record(
        path,
        {
            "form": form.fingerprint,
            "data": selection.data,
            "retrieved": str(TOP_K),
            "selection": f"{sizes.asked}, {sizes.teaching}, {sizes.helped}, {sizes.seed}",
            **asked_of(knowledge_base),
        },
    )
    asker = Asker(form, record, on_progress)
    asked = selection.of(Part.CALIBRATION, Part.TEST, first=options["first"])
    taught = selection.of(Part.TEACHING)
    scope = evidence_scope(evaluation_user(), knowledge_base, policy)
    with_notes = asker.with_notes(
        [*asked, *with_notes_too(taught)],
        retriever=KnowledgeRetriever(scope),
        policy=policy,
    )
    alone = asker.alone([*asked, *taught])
    # From all that were drawn, so that a later run with more tries the same questions.
    drawn = selection.of(Part.CALIBRATION, Part.TEST)
    tried = frozenset(one.case.id for one in drawn[::_COSTED_EACH])
    costed = [one for one in asked if one.case.id in tried]
    costs = asker.considered(NEVER, Undecided(form), costed, tried=tried)

    def decider(name: str) -> SelfKnowledge:
        if name == LOG_PROBABILITY:
            return SelfKnowledgeByDraft(form)
        if name == CBDR:
            rows = prompts_of(taught, alone, with_notes)
            probe = taught_probe(form, rows, path.parent, on_progress=on_progress)
            return SelfKnowledgeByProbe(form, probe)
        if name == DH_ICL:
            return _by_history(form, taught, alone)
        return SelfKnowledgeByMonitor(monitored_writer(), steering=policy.steering)

    deciders = {name: decider(name) for name in options["deciders"]}
    outcomes = {
        name: outcomes_of(
            asked, with_notes, alone, asker.considered(name, one, asked, tried=tried)
        )
        for name, one in deciders.items()
    }
    never = outcomes_of(asked, with_notes, alone, costs)
    return {
        "protocol": protocol_of(
            sources_of(options["data"], selection.questions), selection.questions
        ),
        "sets": list(options["sets"]),
        "seed": sizes.seed,
        "language_model": form.model.name,
        "bound": record.bound,
        "fingerprints": {name: one.fingerprint for name, one in deciders.items()},
        **build_report(outcomes, never, within=options["within"]),
    }


def _by_history(
    form: ClosedBookForm, taught: Sequence[TimedQuestion], alone: Mapping[str, Row]
) -> SelfKnowledge:
    history = TaughtHistory(taught, alone, load_embedder(settings.EMBEDDING_MODEL))
    return SelfKnowledgeByHistory(form, history_form(), history)
