"""The multiple-choice suites, by name."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Unpack

from accounts.ids import digest
from kb.documents.models import KnowledgeBase
from qa.evaluation.judging import Suite
from qa.evaluation.knowledge import given_or_empty
from qa.evaluation.suites.options import (
    SuiteFactory,
    SuiteOptions,
    about,
    deciding_policy,
    refuse_others,
)
from qa.exceptions import EvaluationDataError
from qa.inference.configured import load_writer
from qa.policies.models import Policy
from qa.policies.services import active_policy, new_version

from .knowledge import Confidence, corpus_knowledge, enriched_knowledge, gold_knowledge
from .questions import (
    ChoiceData,
    ChoiceModel,
    ChoiceQuestion,
    read_commonsenseqa,
    read_medqa,
    read_truthfulqa,
)
from .suite import ChoiceSuite
from .tallies import COMMONSENSEQA, MC1, MC2, MEDQA, MEDQA_CORPUS

_OPTIONS = (
    "Options are shuffled by a fixed seed and the question's own words; results are "
    "joined by the question's id; each choice is scored against its own question's "
    "options."
)
_GOLD = (
    "The knowledge base contains one verified entry, the question and its right "
    "option, for {known} of the {all} test questions. Known leakage, by design and as "
    "in Learn to Refuse's gold-ratio experiment: if a question's own entry is in the "
    "knowledge base, so is its answer. The suite measures retrieval, refusal and "
    "reading, not what a model knows."
)
_ENRICHED = (
    "The knowledge base contains one entry per question, which the language model "
    "wrote from the question alone, as in Learn to Refuse: it saw neither options nor "
    "right answers, and nobody checked what it wrote. The confidence of an entry is the "
    "square root of the {confidence} confidence, so that the gate decides as the "
    "release's does, which compares the squared distance over confidence with alpha. "
    "The model's closed-book accuracy is measured in the run without this knowledge."
)
_MIN_FLOOR = 0.01
_ADMITTING = "enriched"
_GIVEN = "The knowledge base {slug} is asked unchanged; nothing is added to it."
_CLOSED = (
    "Without a knowledge base everything is refused, and only the model's closed-book "
    "accuracy is measured (plain_accuracy)."
)
_CORPUS = (
    "The knowledge base contains the texts of {name}, verified, and nothing else. What "
    "the paper used (sentences of MedRAG's textbooks) is not part of its release."
)
_SEVERAL = (
    "Accuracy is the share of the question's options that are labelled correctly; a "
    "choice counts as right if that is more than half."
)
_ONE = "A choice is right if it is the one right option."


@cache
def configured_model(*, steps: bool = True) -> ChoiceModel:
    """Return the choice model of the configured language model, one per process.

    Args:
        steps: Whether to ask a server for evidence and reasoning before the choice; a
            model that scores options uses no steps.
    """
    # These imports load torch, which a process that asks nothing does not need.
    from qa.inference.configured import load_language_model  # noqa: PLC0415
    from qa.inference.grounded import GroundedLanguageModel  # noqa: PLC0415
    from qa.inference.guided import GuidedLanguageModel  # noqa: PLC0415
    from qa.inference.instructed import InstructedLanguageModel  # noqa: PLC0415
    from qa.inference.server import ServerLanguageModel  # noqa: PLC0415

    from .server import ServerChoiceModel  # noqa: PLC0415
    from .white_box import WhiteBoxChoiceModel  # noqa: PLC0415

    model = load_language_model()
    if isinstance(model, GroundedLanguageModel):
        return WhiteBoxChoiceModel(model.guided)
    if isinstance(model, GuidedLanguageModel):
        return WhiteBoxChoiceModel(model)
    if isinstance(model, InstructedLanguageModel):
        return WhiteBoxChoiceModel(GuidedLanguageModel(model.model))
    if isinstance(model, ServerLanguageModel):
        return ServerChoiceModel(model, steps=steps)
    raise EvaluationDataError("This language model can't choose among options.")


def open_truthfulqa(
    *,
    several: bool,
    ratio: float = 1.0,
    model: Callable[[], ChoiceModel] = configured_model,
    enriched: Confidence | None = None,
    **options: Unpack[SuiteOptions],
) -> Suite:
    """Return the suite of TruthfulQA's MC1, or of MC2 with `several`.

    Args:
        several: Whether all right options are to be chosen.
        ratio: The share of the questions, in [0, 1], whose answers the gold knowledge
            base contains; unused if `options` name a knowledge base.
        enriched: Use knowledge that the language model writes from the questions
            alone, with this confidence; None uses gold knowledge.
    """
    name = MC2 if several else MC1
    refuse_others(name, options, frozenset({"knowledge_base"}))
    seed = options.get("seed", 0)
    data = read_truthfulqa(options.get("data"), several=several, seed=seed)
    given = options.get("knowledge_base", "")
    if given:
        knowledge_base = given_or_empty(given)
        protocol = _GIVEN.format(slug=given)
    elif enriched:
        knowledge_base = _enriched("truthfulqa", data, enriched, options)
        protocol = _ENRICHED.format(confidence=enriched.value)
    else:
        # MC1 and MC2 are asked against the same knowledge, from MC1's right options.
        gold = read_truthfulqa(options.get("data"), several=False, seed=seed).questions
        knowledge_base = gold_knowledge(
            "truthfulqa",
            gold,
            ratio,
            digest=data.digest,
            loading=options.get("loading"),
        )
        known = f"{round(ratio * len(gold)):,}"
        protocol = _GOLD.format(known=known, all=f"{len(gold):,}") if ratio else _CLOSED
    return _suite(
        name,
        f"{protocol} {_SEVERAL if several else _ONE}",
        knowledge_base,
        data,
        model,
        options,
        ratio=None if given or enriched else ratio,
        plain=enriched is None and bool(options.get("shadow")),
    )


def open_other(
    name: str, *, enriched: Confidence | None = None, **options: Unpack[SuiteOptions]
) -> Suite:
    """Return the suite of another data set, closed-book or with a knowledge base.

    Args:
        enriched: Use knowledge that the language model writes from only the questions
            to be asked, with this confidence.
    """
    refuse_others(name, options, frozenset({"knowledge_base"}))
    data = _OTHERS[name](options.get("data"), seed=options.get("seed", 0))
    slug = options.get("knowledge_base", "")
    if enriched:
        asked = _asked(data, options)
        some = ChoiceData(asked, digest(data.digest, *(row.id for row in asked)))
        knowledge_base = _enriched(name, some, enriched, options)
        protocol = _ENRICHED.format(confidence=enriched.value)
    else:
        knowledge_base = given_or_empty(slug)
        protocol = _GIVEN.format(slug=slug) if slug else _CLOSED
    return _suite(
        name,
        f"{protocol} {_ONE}",
        knowledge_base,
        data,
        configured_model,
        options,
        plain=False if enriched else None,
    )


def _enriched(
    name: str, data: ChoiceData, confidence: Confidence, options: SuiteOptions
) -> KnowledgeBase:
    """Return the knowledge base written by the model; set a policy that admits it."""
    knowledge_base = enriched_knowledge(
        name,
        data.questions,
        digest=data.digest,
        writer=load_writer,
        confidence=confidence,
        loading=options.get("loading"),
    )
    options["policy"] = _admitting(knowledge_base, options)
    return knowledge_base


def _open_medqa_corpus(**options: Unpack[SuiteOptions]) -> Suite:
    """Return the suite of MedQA with a corpus, a file of texts."""
    refuse_others(MEDQA_CORPUS, options, frozenset({"knowledge"}))
    file = options.get("knowledge")
    if file is None:
        raise EvaluationDataError(
            f"The suite {MEDQA_CORPUS} needs a corpus: --knowledge PATH, a JSON Lines "
            'file of objects with a "text".'
        )
    data = read_medqa(options.get("data"), seed=options.get("seed", 0))
    knowledge_base = corpus_knowledge("medqa", file, loading=options.get("loading"))
    protocol = f"{_CORPUS.format(name=file.name)} {_ONE}"
    return _suite(
        MEDQA_CORPUS, protocol, knowledge_base, data, configured_model, options
    )


def _suite(
    name: str,
    protocol: str,
    knowledge_base: KnowledgeBase,
    data: ChoiceData,
    model: Callable[[], ChoiceModel],
    options: SuiteOptions,
    *,
    ratio: float | None = None,
    plain: bool | None = None,
) -> Suite:
    return ChoiceSuite(
        name=name,
        protocol=f"{protocol} {_OPTIONS}",
        knowledge_base=knowledge_base,
        policy=deciding_policy(knowledge_base, options),
        questions=_asked(data, options),
        about=about(data.digest, options, ratio=ratio),
        plain=bool(options.get("shadow")) if plain is None else plain,
        model=model,
    )


def _asked(data: ChoiceData, options: SuiteOptions) -> tuple[ChoiceQuestion, ...]:
    ordered = sorted(data.questions, key=lambda question: question.id)
    return tuple(ordered[: options.get("limit")])


def _admitting(knowledge_base: KnowledgeBase, options: SuiteOptions) -> Policy:
    """Return the policy, or a version of it that admits entries of low confidence."""
    policy = options.get("policy") or active_policy(knowledge_base)
    if policy.unverified_floor <= _MIN_FLOOR:
        return policy
    found = Policy.objects.filter(
        knowledge_base=knowledge_base,
        name=_ADMITTING,
        alpha=policy.alpha,
        unverified_floor=_MIN_FLOOR,
    ).first()
    return found or new_version(
        policy, by=options.get("by"), name=_ADMITTING, unverified_floor=_MIN_FLOOR
    )


_OTHERS: Mapping[str, Callable[..., ChoiceData]] = {
    COMMONSENSEQA: read_commonsenseqa,
    MEDQA: read_medqa,
}
MULTIPLE_CHOICE: Mapping[str, SuiteFactory] = {
    MC1: partial(open_truthfulqa, several=False),
    MC2: partial(open_truthfulqa, several=True),
    **{name: partial(open_other, name) for name in _OTHERS},
    MEDQA_CORPUS: _open_medqa_corpus,
}
