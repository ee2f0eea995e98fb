"""A joint probe as files, and back: its weights are JSON that anybody can read."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace

from probes.cards import Json, ProbeCard, ProbeFiles, ProbeKind, card_bytes
from probes.joint.regression import JointProbe, JointSettings, Term


def joint_files(
    probe: JointProbe, settings: JointSettings, card: ProbeCard
) -> ProbeFiles:
    """Return a fitted probe as files.

    Args:
        settings: What it was fitted with.
        card: What the probe does not know of itself; the rest is filled in here.
    """
    said = {
        "intercept": probe.intercept,
        "terms": {name: asdict(term) for name, term in probe.terms.items()},
    }
    text = json.dumps(said, indent=2, sort_keys=True, allow_nan=False)
    weights = f"{text}\n".encode()
    chosen: dict[str, Json] = {
        "signals": [*settings.signals],
        "log_odds": [*sorted(settings.log_odds)],
        "strength": settings.strength,
    }
    filled = replace(
        card,
        kind=ProbeKind.JOINT,
        language_model=probe.language_model,
        layer=None,
        part="",
        temperature=1.0,
        inputs=probe.inputs,
        settings=chosen,
    )
    return ProbeFiles("joint probe", card_bytes(filled, weights), weights)


def joint_from(files: ProbeFiles, *, language_model: str) -> JointProbe:
    """Return the probe for the model of that fingerprint.

    Raises:
        ProbeFileError: A file is damaged, or says what cannot be.
        ProbeMismatchError: It was fitted for another language model.
    """
    card = files.checked(language_model=language_model)
    if card.kind is not ProbeKind.JOINT:
        raise files.damaged(f"a {card.kind.value} probe reads no signals")
    try:
        said = json.loads(files.weights.decode())
        terms = {str(name): _term(term) for name, term in said["terms"].items()}
        intercept = _number(said["intercept"])
    except (
        AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise files.damaged(f"{type(error).__name__}: {error}") from error
    return JointProbe(card.language_model, intercept, terms, card.inputs)


def _term(said: Mapping[str, object]) -> Term:
    deviation = _number(said["deviation"])
    if deviation <= 0:
        msg = f"a deviation is {deviation}"
        raise ValueError(msg)
    is_log_odds = said["is_log_odds"]
    if not isinstance(is_log_odds, bool):
        msg = f"is_log_odds is {is_log_odds!r}"
        raise TypeError(msg)
    return Term(
        is_log_odds,
        _number(said["mean"]),
        deviation,
        _number(said["weight"]),
        _number(said["missing"]),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{value!r} is no number"
        raise TypeError(msg)
    if not math.isfinite(value):
        msg = f"{value!r} is not finite"
        raise ValueError(msg)
    return float(value)
