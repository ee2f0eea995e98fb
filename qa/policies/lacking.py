"""What a version of a policy asks for and is not there, for the models that run."""

from collections.abc import Collection
from functools import lru_cache

from django.conf import settings

from accounts.exceptions import NescioError
from probes.cards import ANSWER_KINDS, CONFIDENCE_BY_KIND, ProbeKind
from probes.models import Probe
from qa.pipeline.gates import CONFIDENCES
from qa.pipeline.language_model import LanguageModel
from qa.pipeline.policy import DECLARED, RetrievalTiming, Scope
from qa.policies.models import Policy
from qa.policies.services import has_verifier

# What a timing reads activations by, and what there is without it.
_READ_BY = {
    RetrievalTiming.BOUNDARY: (
        ProbeKind.BOUNDARY,
        "evidence is looked for every time.",
        "Fit one: manage.py train boundary_probe.",
    ),
    RetrievalTiming.MONITORED: (
        ProbeKind.DIRECTIONS,
        "questions are kept and not answered.",
        "Fit some: manage.py train directions.",
    ),
}
# What judges or feeds an answer that a language model writes, and decides no entry's own.
_OF_DRAFTS = ("abstention", "debias_verdict", "rerank")


def lacking(policy: Policy) -> str:
    """Return what a policy asks for and is not there, in words; "" where all is.

    It is no error: what is not known is looked for, and what can't be monitored is kept
    and answered later; what is on and idle decides nothing. Loads the language model that
    the settings name where an active probe has to fit it.
    """
    found = (_lacking_to_know(policy), _idle_abstention(policy), _seldom_used(policy))
    return " ".join(filter(None, found))


def _lacking_to_know(policy: Policy) -> str:
    if policy.scope != Scope.ADAPTIVE:
        return ""
    if settings.LANGUAGE_SERVER_URL:
        return (
            "A language server answers, and what its model knows by itself nothing can "
            "tell: questions are kept and not answered. Activate a version of the scope "
            "knowledge_base."
        )
    timing = RetrievalTiming(policy.retrieval_timing)
    if timing not in _READ_BY:
        return ""
    kind, without, remedy = _READ_BY[timing]
    active, fault = _active((kind,)), ""
    if active:
        # Pulls in torch, which no other policy needs here.
        from qa.inference.policy_models import closed_book_fingerprint  # noqa: PLC0415

        try:
            runs = closed_book_fingerprint()
        except NescioError as error:
            runs, fault = "", str(error)
        if any(probe.language_model == runs for probe in active):
            return ""
    return _unread(kind.value, without, remedy, active=active, fault=fault)


def _idle_abstention(policy: Policy) -> str:
    """Return why abstention is on and refuses nothing by any probe, or by one of them."""
    if not policy.abstention:
        return ""
    wanted = [
        kind
        for kind, signal in CONFIDENCE_BY_KIND.items()
        if getattr(policy, CONFIDENCES[signal])
    ]
    if not wanted:
        return (
            "Abstention is on and each of its minimum confidences is 0, so that it refuses "
            "nothing: calibrate, or set one in a new version."
        )
    usable, fault = _usable_kinds()
    missing = [kind for kind in wanted if kind not in usable]
    if not missing:
        return ""
    becomes = "shown" if policy.answer_without_probe else "refused"
    return _unread(
        " or ".join(missing),
        f"answers are {becomes} without the confidence that it asks for.",
        "Train one: manage.py train probe.",
        active=_active(missing),
        fault=fault,
    )


def _usable_kinds() -> tuple[frozenset[str], str]:
    """Return which kinds of active probes read the running model's answers, and faults."""
    active = {probe.fingerprint: probe.state for probe in _active(ANSWER_KINDS)}
    if not active:
        return frozenset(), ""
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    try:
        runs, states = load_language_model(), frozenset(active.items())
        kinds, faults = _kinds_read(runs, states)  # type: ignore[arg-type]  # by identity
    except NescioError as error:
        return frozenset(), str(error)
    if faults:  # a file may be repaired while the same probes stay active
        _kinds_read.cache_clear()
    return kinds, faults


@lru_cache(maxsize=4)
def _kinds_read(
    runs: LanguageModel, active: frozenset[tuple[str, str]]
) -> tuple[frozenset[str], str]:
    """Return the same of a model and {(fingerprint, state)}; tries each on the model."""
    # Pulls in torch, which no other policy needs here.
    from qa.inference.probe_loading import load_probes  # noqa: PLC0415
    from qa.inference.probe_runner import ActiveProbes  # noqa: PLC0415

    found = load_probes(runs, dict(active))
    if not isinstance(found, ActiveProbes):
        return frozenset(), ""
    kinds = {each.kind for each in found.readers} | {each.kind for each in found.joints}
    return frozenset(kinds), " ".join(found.faults.values())


def _active(kinds: Collection[str]) -> list[Probe]:
    rows = Probe.objects.light().filter(state=Probe.State.ACTIVE, kind__in=kinds)
    return list(rows.order_by("kind", "pk"))


def _unread(
    kind: str, without: str, remedy: str, *, active: Collection[Probe], fault: str
) -> str:
    """Return that no probe of a kind is active for the model that runs, and the remedy.

    `active` are those of other models: active for each is one of a kind.
    """
    if not active:
        return f"No {kind} probe is active: {without} {remedy}"
    named = ", ".join(
        f"{probe} for {probe.language_model_name or 'a model'} "
        f"({probe.language_model[:12]})"
        for probe in active
    )
    why = fault or (
        f"Active are {named}; another model, adapter or number type has another fingerprint."
    )
    return (
        f"No {kind} probe is active that fits the language model that runs: {without} {why} "
        f"{remedy} Or run what those were fitted for (NESCIO_LANGUAGE_MODEL, "
        "NESCIO_LANGUAGE_ADAPTER, NESCIO_MODEL_PRECISION)."
    )


def _seldom_used(policy: Policy) -> str:
    """Return what is on and has little to decide, since the model is seldom asked."""
    idle = [DECLARED[name].label for name in _OF_DRAFTS if getattr(policy, name)]
    if not (idle and policy.verification and has_verifier(policy.knowledge_base)):
        return ""
    if policy.min_entry_answer > policy.min_answerability:
        return ""
    return (
        f"The language model is seldom asked: from a probability of "
        f"{policy.min_entry_answer:g} on an entry is the answer, and below "
        f"{policy.min_answerability:g} the question is refused. So there is little for "
        f"{' and '.join(idle)} to decide; a lower minimum answerability lets it be asked."
    )
