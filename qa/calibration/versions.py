"""The models in use, and policy versions compared: values, origin and certificate."""

from collections.abc import Sequence
from dataclasses import dataclass

from kb.embedding.models import EmbeddingModel
from kb.search import METHOD
from qa.answers.models import Answer
from qa.calibration.models import Certificate
from qa.calibration.wording import FIELDS, Row, part, share
from qa.pipeline.gates import CONFIDENCES, THRESHOLDED, switches
from qa.pipeline.policy import DECLARED
from qa.pipeline.staleness import calibration_under
from qa.pipeline.values import Calibration
from qa.policies.models import Policy


@dataclass(frozen=True, slots=True)
class Running:
    """Fingerprints of the models in use; "" where nothing has been asked yet.

    The language model and the probes are those of the last answer, since loading a
    model takes seconds; `probes` is None if no model has written an answer yet.
    """

    embedder: str
    retrieval: str
    language_model: str
    probes: str | None = None


def current_fingerprints() -> Running:
    active = EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE)
    written = Answer.objects.exclude(language_model="").order_by("-created_at")
    language_model, probes = written.values_list(
        "language_model", "probes"
    ).first() or ("", None)
    return Running(
        embedder=active.values_list("fingerprint", flat=True).first() or "",
        retrieval=METHOD,
        language_model=language_model,
        probes=probes,
    )


def calibration_state(policy: Policy, running: Running | None = None) -> Calibration:
    running = running or current_fingerprints()
    return calibration_under(
        policy.as_value(),
        embedder=running.embedder,
        retrieval=running.retrieval,
        language_model=running.language_model,
        probes=running.probes,
    )


_GATES = tuple(
    name
    for name in DECLARED
    if any(name in switches(row.gate) for row in THRESHOLDED.values())
)
# {policy field: short name} of the confidences that abstention compares.
_CONFIDENCES = {
    field: name.removesuffix("_confidence") for name, field in CONFIDENCES.items()
}
_FINGERPRINT = 12
_ORIGINS = {
    Calibration.CURRENT: "calibrated",
    Calibration.SELF_CALIBRATED: "from own questions",
    Calibration.HAND_SET: "hand-set",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A short label of a version; `tone` is "good", "warn", "bad" or "plain"."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Version:
    policy: Policy
    badges: tuple[Badge, ...]
    alpha: str
    min_entry_answer: str
    min_verdict: str
    confidences: str


def policy_rows(policies: Sequence[Policy]) -> tuple[Row, ...]:
    rows = []
    for field, name in FIELDS:
        values = [getattr(policy, field) for policy in policies]
        cells = tuple(_value(field, value) for value in values)
        rows.append(Row(name, cells, len(set(values)) > 1))
    return tuple(rows)


def certificate_rows(certificates: Sequence[Certificate | None]) -> tuple[Row, ...]:
    if not any(certificates):
        return ()
    fields = (
        ("promise", str),
        ("tested on", lambda c: f"{c.labelled:,} labelled answers"),
        ("shown", lambda c: part(c.shown, c.labelled)),
        ("wrong among the shown", lambda c: part(c.wrong, c.shown)),
        ("bound over questions", lambda c: share(c.bound)),
        (
            "bound over groups",
            lambda c: (
                "not tested"
                if c.group_bound is None
                else f"{share(c.group_bound)}, of {c.groups:,} groups"
            ),
        ),
        ("method", lambda c: c.method.replace("_", " ")),
        ("labels from", lambda c: c.labels_source),
        ("probes", lambda c: _fingerprints(c.probes) or "none"),
        ("created", lambda c: f"{c.created_at:%Y-%m-%d %H:%M}"),
    )
    return tuple(
        Row(name, tuple(words(c) if c else "none" for c in certificates))
        for name, words in fields
    )


def version(policy: Policy, running: Running) -> Version:
    return Version(
        policy=policy,
        badges=(
            threshold_badge(policy, running),
            *(
                [Badge("drifted", "bad")]
                if getattr(policy, "has_drifted", None)
                else []
            ),
            *(Badge(f"{gate} in shadow", "warn") for gate in shadow_gates(policy)),
        ),
        alpha=f"{policy.alpha:g}",
        min_entry_answer=f"{policy.min_entry_answer:g}",
        min_verdict=f"{policy.min_verdict:g}",
        confidences=min_confidences(policy),
    )


def min_confidences(policy: Policy) -> str:
    held = {word: getattr(policy, field) for field, word in _CONFIDENCES.items()}
    parts = (f"{value:g} {word}" for word, value in held.items() if value)
    return ", ".join(parts) or "none"


def threshold_badge(policy: Policy, running: Running) -> Badge:
    state = calibration_state(policy, running)
    if state is Calibration.STALE:
        return Badge("stale", "bad")
    if hasattr(policy, "certificate"):
        return Badge("certified", "good")
    return Badge(_ORIGINS[state])


def shadow_gates(policy: Policy) -> tuple[str, ...]:
    """Return the gates in shadow, without an abstention gate that has no minimum."""
    words = dict(FIELDS)
    judges = any(getattr(policy, field) for field in _CONFIDENCES)
    return tuple(
        words[gate]
        for gate in _GATES
        if not getattr(policy, gate) and (gate != "abstention" or judges)
    )


def _value(field: str, value: object) -> str:
    match value:
        case bool() if field in _GATES:
            return "enforced" if value else "in shadow"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case str():
            shown = value if field == "calibrated_retrieval" else _fingerprints(value)
            return shown or "any"
        case _:
            return str(value)


def _fingerprints(names: str) -> str:
    return " ".join(each[:_FINGERPRINT] for each in names.split())
