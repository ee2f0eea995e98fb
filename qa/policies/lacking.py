"""What a policy version requires that is missing, given the models in use."""

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

# The kind of probe that a retrieval timing needs, what happens without it, the remedy.
_READ_BY = {
    RetrievalTiming.BOUNDARY: (
        ProbeKind.BOUNDARY,
        "evidence is retrieved every time.",
        "Fit one: manage.py train boundary_probe.",
    ),
    RetrievalTiming.MONITORED: (
        ProbeKind.DIRECTIONS,
        "questions are stored and not answered.",
        "Fit some: manage.py train directions.",
    ),
}
# Settings that affect answers written by a language model, but not those from an entry.
_OF_DRAFTS = ("abstention", "debias_verdict", "rerank")


def lacking(policy: Policy) -> str:
    """Describe what a policy requires that is missing; "" if nothing is.

    This is not an error: evidence is then always retrieved, a question that can't be
    monitored is stored and answered later, and an idle setting decides nothing. Loads
    the configured language model if an active probe has to fit it.
    """
    found = (_lacking_to_know(policy), _idle_abstention(policy), _seldom_used(policy))
    return " ".join(filter(None, found))


def _lacking_to_know(policy: Policy) -> str:
    if policy.scope != Scope.ADAPTIVE:
        return ""
    if settings.LANGUAGE_SERVER_URL:
        return (
            "A language server answers, and what its model knows by itself cannot be "
            "measured: questions are stored and not answered. Activate a version of "
            "the scope knowledge_base."
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
    """Describe why abstention is on but has no effect for some or all of its probes."""
    if not policy.abstention:
        return ""
    wanted = [
        kind
        for kind, signal in CONFIDENCE_BY_KIND.items()
        if getattr(policy, CONFIDENCES[signal])
    ]
    if not wanted:
        return (
            "Abstention is on but each of its minimum confidences is 0, so that it "
            "refuses nothing: calibrate, or set one in a new version."
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
    """Return the kinds of active probes that read the model's answers, and faults."""
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
    """Try each active probe, a (fingerprint, state), on the model; return the same."""
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
    """Describe that no active probe of a kind fits the model in use, and the remedy.

    `active` are those of other models: each model has at most one of a kind.
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
        f"{remedy} Or run the model they were fitted for (NESCIO_LANGUAGE_MODEL, "
        "NESCIO_LANGUAGE_ADAPTER, NESCIO_MODEL_PRECISION)."
    )


def _seldom_used(policy: Policy) -> str:
    """Describe settings that have little to decide as the model is seldom asked."""
    idle = [DECLARED[name].label for name in _OF_DRAFTS if getattr(policy, name)]
    if not (idle and policy.verification and has_verifier(policy.knowledge_base)):
        return ""
    if policy.min_entry_answer > policy.min_answerability:
        return ""
    return (
        f"The language model is seldom asked: an entry is the answer from a probability"
        f" of {policy.min_entry_answer:g} on, and below "
        f"{policy.min_answerability:g} the question is refused. So there is little for "
        f"{' and '.join(idle)} to decide; a lower minimum answerability lets it be asked."
    )
