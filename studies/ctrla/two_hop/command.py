"""CtrlA's full loop as a decider, on questions that take two entries."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from accounts.ids import digest
from kb.documents.models import KnowledgeBase
from qa.evaluation.knowledge import asked_of
from qa.exceptions import EvaluationDataError
from qa.inference.configured import load_language_model
from qa.inference.monitored_writer import monitored_writer
from qa.inference.policy_models import load_closed_book_form
from qa.management.base import positive
from qa.pipeline.policy import Policy
from qa.policies.services import active_policy
from studies.cbdr.timing.asking import Record, Row
from studies.cbdr.timing.curve import retrieval_curve, retrieves
from studies.cbdr.timing.knowledge import ensure_sources
from studies.study import (
    OnProgress,
    Outcome,
    Study,
    file_argument,
    within_argument,
)

from .asking import (
    CTRLA,
    GATED,
    GIVEN,
    GIVEN_TO_WRITER,
    NEVER,
    NEVER_BY_WRITER,
    ONCE,
    ONCE_BY_WRITER,
    OPEN,
    TOP_K,
    Asker,
    Models,
)
from .questions import TwoHop, read_two_hop
from .report import (
    CTRLA_FULL,
    LOG_PROBABILITY,
    LOG_PROBABILITY_BY_WRITER,
    claims_of,
    compared,
    figures_of,
    is_right,
    notes,
    sent_to,
    tables,
)

# Every sixth question chooses thresholds; the families alternate, so each has some.
_CALIBRATION_EACH: Final = 6


class Command(Study):
    """`python -m studies ctrla_two_hop --data DIR`."""

    help = (
        "Answer questions that take two entries with CtrlA's full loop (sentence by "
        "sentence, steered, monitored, searching where words are in doubt), and compare "
        "it with never retrieving, with retrieving once, and with the log-probability of "
        "the model's own draft. The questions are made from PopQA and true statements. "
        "Every question is asked once and recorded; an interrupted run continues from "
        "there. Exit code: 0, or 2 on failure."
    )
    writes = ("json", "markdown")

    def declare(self, parser: argparse.ArgumentParser) -> None:
        file_argument(parser, "Directory of the data sets: popqa/ and true_false/.")
        parser.add_argument(
            "--limit", type=positive, metavar="N",
            help=f"Ask the first N of the questions in seeded order; one in "
            f"{_CALIBRATION_EACH} chooses thresholds (default: all).",
        )  # fmt: skip
        within_argument(parser)
        parser.add_argument(
            "--record", type=Path, metavar="PATH",
            help="File that records the answers (default: one for each model and data, "
            "under the variable directory).",
        )  # fmt: skip

    def measure(self, options: dict[str, Any], on_progress: OnProgress) -> Outcome:
        data = read_two_hop(options["data"], seed=options["seed"])
        models = Models(
            load_language_model(), load_closed_book_form(), monitored_writer()
        )
        knowledge_base = ensure_sources(
            "two-hop",
            "two-hop questions",
            data.sources,
            loading=partial(on_progress, "Loading knowledge"),
        )
        record = _record(models, knowledge_base, data.digest, options["record"])
        asker = Asker(models, knowledge_base, record, on_progress)
        asked = data.questions[: options["limit"]]
        chosen_by = asked[_CALIBRATION_EACH - 1 :: _CALIBRATION_EACH]
        tested = [one for one in asked if one not in chosen_by]
        if not chosen_by or not tested:
            raise EvaluationDataError(
                f"{len(asked)} questions are too few to choose thresholds on one in "
                f"{_CALIBRATION_EACH} of them; ask more with --limit."
            )
        thresholds = _thresholds(asker, chosen_by, within=options["within"])
        rows = _answered(
            asker, tested, thresholds, active_policy(knowledge_base).as_value()
        )
        found = compared(tested, rows)
        return Outcome(
            "Two-hop questions",
            {
                "language model": models.form.model.name,
                "questions": len(tested),
                "calibration questions": len(chosen_by),
                "thresholds": ", ".join(
                    f"{name} {'always' if value is None else f'{value:.3f}'}"
                    for name, value in thresholds.items()
                ),
                "steering": OPEN.steering,
                "entries": sum(len(source.facts) for source in data.sources),
                "seed": options["seed"],
                "data": data.digest[:12],
            },
            list(tables(found)),
            notes(len(chosen_by), options["within"]),
            figures_of(found, thresholds),
            claims=[*claims_of(found)],
        )


def _record(
    models: Models, knowledge_base: KnowledgeBase, data: str, path: Path | None
) -> Record:
    """Return the record of these models and data, by default in a file of its own."""
    bound = {
        "language_model": models.language_model.fingerprint,
        "form": models.form.fingerprint,
        "writer": models.writer.fingerprint,
        "data": data,
        "retrieved": str(TOP_K),
        **asked_of(knowledge_base),
    }
    name = f"two-hop-{digest(*bound.values())[:12]}.jsonl"
    return Record(path or settings.PLACES.var / "evaluation" / name, bound)


def _thresholds(
    asker: Asker, chosen_by: Sequence[TwoHop], *, within: float
) -> dict[str, float | None]:
    """Choose every decider's threshold in the same way, on the same questions.

    On CtrlA's curve, a question whose first sentence is below the threshold gets the
    loop's answer with every word in doubt; any other gets the closed-book answer.
    """
    alone = asker.never(chosen_by)
    own = [is_right(one, alone[one.id]) for one in chosen_by]

    def cheapest(
        values: Sequence[float | None], rows: Mapping[str, Row]
    ) -> float | None:
        right = [is_right(one, rows[one.id]) for one in chosen_by]
        curve = retrieval_curve(values, own, right)
        return curve.threshold[curve.cheapest(within=within)]

    known = [alone[one.id]["known"] for one in chosen_by]
    looped = asker.loop(chosen_by, threshold=None)
    weakest = [
        None if looped[one.id]["unasked"] else looped[one.id]["weakest"]
        for one in chosen_by
    ]
    return {
        LOG_PROBABILITY: cheapest(known, asker.once(chosen_by)),
        LOG_PROBABILITY_BY_WRITER: cheapest(known, asker.once_by_writer(chosen_by)),
        CTRLA: cheapest(weakest, looped),
    }


def _answered(
    asker: Asker,
    tested: Sequence[TwoHop],
    thresholds: Mapping[str, float | None],
    policy: Policy,
) -> dict[str, Mapping[str, Row]]:
    alone, once = asker.never(tested), asker.once(tested)
    once_by_writer = asker.once_by_writer(tested)

    def decided(name: str, evidence: Mapping[str, Row]) -> Mapping[str, Row]:
        # An empty draft or a refusal, which is not shown, retrieves too.
        sent = {
            one.id: not alone[one.id]["shown"]
            or retrieves(alone[one.id]["known"], thresholds[name])
            for one in tested
        }
        return sent_to(alone, evidence, sent)

    return {
        NEVER: alone,
        ONCE: once,
        GATED: asker.gated(tested, policy),
        LOG_PROBABILITY: decided(LOG_PROBABILITY, once),
        NEVER_BY_WRITER: asker.never_by_writer(tested),
        ONCE_BY_WRITER: once_by_writer,
        LOG_PROBABILITY_BY_WRITER: decided(LOG_PROBABILITY_BY_WRITER, once_by_writer),
        CTRLA: asker.loop(tested, threshold=thresholds[CTRLA]),
        CTRLA_FULL: asker.loop(tested, threshold=None),
        GIVEN: asker.both_given(tested),
        GIVEN_TO_WRITER: asker.given_to_writer(tested),
    }
