"""The comparison from data to figures: what is asked is kept, what is kept is replayed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from kb.embedder import load_embedder
from kb.models import KnowledgeBase
from qa.evaluation.knowledge import asked_of, evaluation_user
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.history import OwnKnowledgeByHistory
from qa.own_knowledge.log_probability import OwnKnowledgeByDraft
from qa.own_knowledge.selection import history_form, own_form
from qa.pipeline.own_knowledge import OwnKnowledge
from qa.services.policies import active_policy
from qa.services.retriever import KnowledgeRetriever, scope_of

from .asking import OnProgress, answer_alone, answer_with_notes, consider_all
from .build import build_report
from .deciders import Undecided
from .history import TaughtHistory
from .knowledge import ensure_comparison_knowledge, protocol_of, sources_of
from .names import DH_ICL, LOG_PROBABILITY, NEVER
from .outcomes import outcomes_of
from .questions import Asked, Part, Selection, Sizes, select
from .record import ALONE, WITH_NOTES, Record


@dataclass(frozen=True, slots=True)
class Options:
    """What is compared.

    Attributes:
        data: Directory of the data sets.
        sets: Of `questions.SETS`.
        deciders: Of `names.DECIDERS`.
        within: As of `build_report`.
        record: File that holds what was asked.
    """

    data: Path
    sets: Sequence[str]
    sizes: Sizes
    deciders: Sequence[str]
    within: float
    record: Path


def compare_retrieval(options: Options, *, on_progress: OnProgress) -> dict[str, Any]:
    """Ask what is not recorded yet, and return the figures of all, ready for JSON.

    Raises:
        EvaluationDataError: A file is missing or laid out otherwise, or the record is of
            another comparison.
        LanguageModelUnavailableError: The language model is a server's.
    """
    selection = select(options.data, options.sets, options.sizes)
    knowledge_base = ensure_comparison_knowledge(
        options.data,
        selection.questions,
        loading=lambda done, total: on_progress("Loading knowledge", done, total),
    )
    form = own_form()
    policy = active_policy(knowledge_base).as_value()
    record = Record(options.record, _bound(options, selection, form, knowledge_base))
    scope = scope_of(evaluation_user(), knowledge_base, policy)
    asked = selection.of(Part.CALIBRATION, Part.TEST)
    answer_with_notes(
        asked, form=form, retriever=KnowledgeRetriever(scope), policy=policy,
        record=record, on_progress=on_progress,
    )  # fmt: skip
    answers = record.of(WITH_NOTES, form.fingerprint)
    undecided = Undecided(form)
    consider_all(
        NEVER, undecided, asked, model=form.model, record=record,
        on_progress=on_progress, answer_each=1,
    )  # fmt: skip
    plain = record.of(NEVER, undecided.fingerprint)
    taught = selection.of(Part.TEACHING)
    answer_alone(taught, form=form, record=record, on_progress=on_progress)
    alone = record.of(ALONE, form.fingerprint)
    made: Mapping[str, Callable[[], OwnKnowledge]] = {
        LOG_PROBABILITY: lambda: OwnKnowledgeByDraft(form),
        DH_ICL: lambda: _by_history(form, taught, alone),
    }
    deciders = {name: made[name]() for name in options.deciders}
    outcomes = {}
    for name, decider in deciders.items():
        consider_all(
            name, decider, asked, model=form.model, record=record,
            on_progress=on_progress,
        )  # fmt: skip
        rows = record.of(name, decider.fingerprint)
        outcomes[name] = outcomes_of(asked, answers, rows, plain)
    never = outcomes_of(asked, answers, plain, plain)
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


def _by_history(
    form: OwnKnowledgeForm,
    taught: Sequence[Asked],
    alone: Mapping[str, Mapping[str, Any]],
) -> OwnKnowledge:
    embedder = load_embedder(settings.EMBEDDING_MODEL)
    return OwnKnowledgeByHistory(
        form, history_form(), TaughtHistory(taught, alone, embedder)
    )


def _bound(
    options: Options,
    selection: Selection,
    form: OwnKnowledgeForm,
    knowledge_base: KnowledgeBase,
) -> dict[str, str]:
    sizes = options.sizes
    return {
        "form": form.fingerprint,
        "data": selection.data,
        "selection": f"{sizes.asked}, {sizes.teaching}, {sizes.helped}, {sizes.seed}",
        **asked_of(knowledge_base),
    }
