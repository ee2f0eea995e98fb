"""The comparison from data to figures: what is asked is kept, what is kept is replayed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from kb.documents.models import KnowledgeBase
from kb.embedding.embedder import load_embedder
from qa.answers.retriever import KnowledgeRetriever, scope_of
from qa.evaluation.knowledge import asked_of, evaluation_user
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.known_by_history import SelfKnowledgeByHistory
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.inference.monitored_writer import monitored_writer
from qa.inference.policy_models import history_form, load_closed_book_form
from qa.pipeline.self_knowledge import SelfKnowledge
from qa.policies.services import active_policy
from qa.training.boundary_prompts import AnsweredPrompt

from .asking import TOP_K, Asker, OnProgress, Record, Row
from .build import CBDR, CTRLA, DH_ICL, LOG_PROBABILITY, NEVER, build_report
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
from .questions import Asked, Part, Selection, Sizes, select

_COSTED_EACH: Final = 8


@dataclass(frozen=True, slots=True)
class Options:
    """What is compared.

    Attributes:
        data: Directory of the data sets.
        sets: Of `questions.SETS`.
        deciders: Of `names.DECIDERS`.
        first: As of `Selection.of`: what is asked of the drawn questions for now.
        within: As of `build_report`.
        record: File that holds what was asked.
    """

    data: Path
    sets: Sequence[str]
    sizes: Sizes
    deciders: Sequence[str]
    first: int | None
    within: float
    record: Path


def compare_retrieval(options: Options, *, on_progress: OnProgress) -> dict[str, Any]:
    """Ask what is not recorded yet, and return the figures of all, ready for JSON."""
    selection = select(options.data, options.sets, options.sizes)
    knowledge_base = ensure_comparison_knowledge(
        options.data,
        selection.questions,
        loading=lambda done, total: on_progress("Loading knowledge", done, total),
    )
    form = load_closed_book_form()
    policy = active_policy(knowledge_base).as_value()
    if CTRLA in options.deciders:
        monitored_writer()  # fails now rather than after an hour of asking
    record = Record(options.record, _bound(options, selection, form, knowledge_base))
    asker = Asker(form, record, on_progress)
    asked = selection.of(Part.CALIBRATION, Part.TEST, first=options.first)
    taught = selection.of(Part.TEACHING)
    scope = scope_of(evaluation_user(), knowledge_base, policy)
    with_notes = asker.with_notes(
        [*asked, *with_notes_too(taught)],
        retriever=KnowledgeRetriever(scope),
        policy=policy,
    )
    alone = asker.alone([*asked, *taught])
    # Of all that were drawn, so that going on with more tries no others.
    drawn = selection.of(Part.CALIBRATION, Part.TEST)
    tried = frozenset(one.case.id for one in drawn[::_COSTED_EACH])
    costed = [one for one in asked if one.case.id in tried]
    costs = asker.considered(NEVER, Undecided(form), costed, tried=tried)
    made: Mapping[str, Callable[[], SelfKnowledge]] = {
        LOG_PROBABILITY: lambda: SelfKnowledgeByDraft(form),
        CBDR: lambda: _by_boundary(
            form, prompts_of(taught, alone, with_notes), options, on_progress
        ),
        DH_ICL: lambda: _by_history(form, taught, alone),
        CTRLA: lambda: SelfKnowledgeByMonitor(
            monitored_writer(), steering=policy.steering
        ),
    }
    deciders = {name: made[name]() for name in options.deciders}
    outcomes = {
        name: outcomes_of(
            asked,
            with_notes,
            alone,
            asker.considered(name, decider, asked, tried=tried),
        )
        for name, decider in deciders.items()
    }
    never = outcomes_of(asked, with_notes, alone, costs)
    return {
        "protocol": protocol_of(
            sources_of(options.data, selection.questions), selection.questions
        ),
        "sets": list(options.sets),
        "seed": options.sizes.seed,
        "language_model": form.model.name,
        "bound": record.bound,
        "fingerprints": {
            name: decider.fingerprint for name, decider in deciders.items()
        },
        **build_report(outcomes, never, within=options.within),
    }


def _by_boundary(
    form: ClosedBookForm,
    prompts: Sequence[AnsweredPrompt],
    options: Options,
    on_progress: OnProgress,
) -> SelfKnowledge:
    directory = options.record.parent
    probe = taught_probe(form, prompts, directory, on_progress=on_progress)
    return SelfKnowledgeByProbe(form, probe)


def _by_history(
    form: ClosedBookForm,
    taught: Sequence[Asked],
    alone: Mapping[str, Row],
) -> SelfKnowledge:
    embedder = load_embedder(settings.EMBEDDING_MODEL)
    return SelfKnowledgeByHistory(
        form, history_form(), TaughtHistory(taught, alone, embedder)
    )


def _bound(
    options: Options,
    selection: Selection,
    form: ClosedBookForm,
    knowledge_base: KnowledgeBase,
) -> dict[str, str]:
    sizes = options.sizes
    return {
        "form": form.fingerprint,
        "data": selection.data,
        "retrieved": str(TOP_K),
        "selection": f"{sizes.asked}, {sizes.teaching}, {sizes.helped}, {sizes.seed}",
        **asked_of(knowledge_base),
    }
