"""The search and the gates of an answer as pages show them, including shadow gates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from qa.answers.models import Answer
from qa.pipeline.gates import (
    CONFIDENCES,
    NOT_COMPARED,
    SIGNALS,
    Gate,
    find_row,
    switches,
)
from qa.pipeline.policy import Policy, RetrievalTiming, Scope
from qa.pipeline.replay import flat, replay
from qa.pipeline.rules import Kind

from . import wording
from .view import not_compared


def shadow_verdict(gate: Gate, answer: Answer) -> bool | None:
    """Return whether the gate would have let the question pass, had it been enforced.

    None if it was enforced, or if it is only partly in shadow and would not refuse.
    """
    if answer.policy is None:
        return None
    policy = answer.policy.as_value()
    enforcing = switches(gate)
    off = [switch for switch in enforcing if not getattr(policy, switch)]
    if not off:
        return None
    refused = replay(flat(answer.signals), _alone(gate, policy)).gate is gate
    if refused:
        return False
    return True if len(off) == len(enforcing) else None


def in_shadow(answer: Answer) -> frozenset[str]:
    if answer.policy is None:
        return frozenset()
    policy, measured = answer.policy.as_value(), flat(answer.signals)
    return frozenset(
        name
        for name, row in SIGNALS.items()
        if row.is_shown and row.is_held(policy) and not row.is_enforced(policy)
        if measured.get(name) is not None and measured.get(row.unless) is None
    )


def _alone(gate: Gate, policy: Policy) -> Policy:
    mine = switches(gate)
    changes: dict[str, Any] = {name: name in mine for name in switches()}
    # The model's own knowledge answers besides a gate, never in its place.
    changes["scope"] = Scope.KNOWLEDGE_BASE
    changes["retrieval_timing"] = RetrievalTiming.ALWAYS
    return replace(policy, **changes)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart 100 units wide."""

    start: float
    width: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class SignalLine:
    """One measured value in words.

    `passed` is None if no gate judges it; in shadow, what a gate would have decided.
    """

    label: str
    value: str
    rule: str
    passed: bool | None
    bar: Bar | None
    is_shadow: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the waterfall.

    `state` is passed, answered, refused, shadow (would have refused), none (continued)
    or skipped.
    """

    name: str
    question: str
    state: str
    verdict: str
    signals: tuple[SignalLine, ...]
    time: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class StageTimeLine:
    """How long a stage took, as a bar that starts where the previous one ended."""

    name: str
    time: str
    bar: Bar


# The stages of abstention if it ended an answer before the first token.
_STAGES_OF_ENDING = ("load", "generate", "abstention")
_SEARCH_STAGES = ("question", "retrieve")
# The one signal that belongs to the search; it refuses nothing.
_VISIBLE = "visible_entries"


def waterfall(answer: Answer) -> tuple[Step, ...]:
    """Return the search and the gates, each starting where the previous one ended."""
    total = _total(answer.milliseconds) or 1.0
    steps: list[Step] = []
    start = 0.0
    shadow = in_shadow(answer)
    for gate in _order(answer):
        words = wording.GATES[gate]
        if gate is Gate.VERBATIM:  # the first gate that reads evidence
            steps.append(_search(answer, start, total))
            start += _spent(answer, _SEARCH_STAGES)
        signals = [s for s in answer.signals if s["gate"] == gate]
        if gate is Gate.ABSTENTION and not _has_probes(answer):
            continue
        if words.is_optional and not signals:
            continue
        spent = _spent(answer, _gate_stages(gate, answer))
        state, verdict = _gate_state(gate, answer, bool(signals))
        judged = [
            s
            for s in signals
            if (s["passed"] is not None or s["name"] in shadow or _is_missing(s))
            # No value means that there was no question to compare with.
            and not (gate is Gate.VERBATIM and s["value"] is None)
        ]
        reached = state != "skipped" and spent > 0
        steps.append(
            Step(
                name=words.name,
                question=words.question,
                state=state,
                verdict=verdict,
                signals=tuple(_signal_line(signal, shadow) for signal in judged),
                time=wording.time_in_words(spent) if reached else "",
                bar=_share(start, spent, total) if reached else None,
            )
        )
        start += spent
    return tuple(steps)


def _order(answer: Answer) -> list[Gate]:
    """Return the gates in this answer's order: own knowledge first or after ENTRY."""
    gates = list(wording.GATES)
    first = next(iter(answer.signals), None)
    if first and first["gate"] == Gate.BOUNDARY:
        gates.insert(0, gates.pop(gates.index(Gate.BOUNDARY)))
    return gates


def _is_missing(signal: Mapping[str, Any]) -> bool:
    """Return whether the signal counts sources not compared, which no gate judges."""
    return bool(signal["name"] == NOT_COMPARED and signal["value"])


def _search(answer: Answer, start: float, total: float) -> Step:
    spent = _spent(answer, _SEARCH_STAGES)
    if answer.gate == Gate.BOUNDARY and "retrieve" not in answer.milliseconds:
        spent = 0.0  # only the question was read
    searched = [s for s in answer.signals if s["name"] == _VISIBLE]
    return Step(
        name="Search",
        question="What does the knowledge base contain about it?",
        state="passed" if spent else "skipped",
        verdict="" if spent else "Not reached",
        signals=tuple(_signal_line(signal) for signal in searched),
        time=wording.time_in_words(spent) if spent else "",
        bar=_share(start, spent, total) if spent else None,
    )


def _has_probes(answer: Answer) -> bool:
    """Return whether abstention is enforced, or a probe measured a confidence."""
    is_enforced = answer.policy is not None and answer.policy.abstention
    return is_enforced or any(
        signal["name"] in CONFIDENCES and signal["value"] is not None
        for signal in answer.signals
    )


def _gate_stages(gate: Gate, answer: Answer) -> tuple[str, ...]:
    if "soft_refusal" in answer.milliseconds or "abstention" not in answer.milliseconds:
        return wording.GATES[gate].stages
    late = {Gate.SOFT_REFUSAL: (), Gate.ABSTENTION: _STAGES_OF_ENDING}
    return late.get(gate, wording.GATES[gate].stages)


def _spent(answer: Answer, stages: tuple[str, ...]) -> float:
    return float(sum(answer.milliseconds.get(stage, 0.0) for stage in stages))


def _gate_state(gate: Gate, answer: Answer, measured: bool) -> tuple[str, str]:
    decided_here = answer.gate == gate or (
        gate is Gate.BOUNDARY
        and not answer.gate
        and bool(answer.boundary.get("segments"))
    )
    if decided_here and answer.outcome == Answer.Outcome.REFUSED:
        return "refused", "Refused here"
    if decided_here and answer.outcome == Answer.Outcome.ANSWERED:
        return "answered", "Answered here"
    if not measured:
        return "skipped", "Not reached"
    if gate is Gate.BOUNDARY:
        is_last = answer.outcome == Answer.Outcome.REFUSED and _was_searched_first(
            answer
        )
        return "none", "Not known" if is_last else "Not known, continued"
    if wording.GATES[gate].answers:
        return "none", "No exact answer, continued"
    if gate is Gate.HARD_REFUSAL and _found_nothing(answer):
        return "none", "Nothing covers it, continued"
    if gate is Gate.ABSTENTION and not _has_least(answer):
        return "none", "Measured only"
    return _passed_state(gate, answer)


def _passed_state(gate: Gate, answer: Answer) -> tuple[str, str]:
    match shadow_verdict(gate, answer):
        case False:
            return "shadow", "Would have refused (shadow)"
        case _ if gate is Gate.AGREEMENT and not_compared(answer):
            return "none", "Not compared yet"
        case True:
            return "passed", "Would have passed (shadow)"
    return "passed", "Passed"


def _was_searched_first(answer: Answer) -> bool:
    return _order(answer)[0] is not Gate.BOUNDARY


def _found_nothing(answer: Answer) -> bool:
    """Return whether own knowledge answered what hard refusal would have refused."""
    measured = {signal["gate"] for signal in answer.signals}
    is_own = Gate.BOUNDARY in measured and answer.outcome == Answer.Outcome.ANSWERED
    return is_own and _was_searched_first(answer) and Gate.ENTRY not in measured


def _has_least(answer: Answer) -> bool:
    """Return whether any confidence has a minimum, enforced or in shadow."""
    policy = answer.policy
    return policy is not None and any(
        getattr(policy, field) > 0 for field in CONFIDENCES.values()
    )


def _signal_line(
    signal: dict[str, object], shadow: frozenset[str] = frozenset()
) -> SignalLine:
    measured, threshold, passed = (signal[k] for k in ("value", "threshold", "passed"))
    name = str(signal["name"])
    row = find_row(name)
    number = float(measured) if isinstance(measured, int | float) else None
    limit = float(threshold) if isinstance(threshold, int | float) else None
    is_shadow = name in shadow and passed is None
    if is_shadow:
        passed = row.meets(number, limit)
    is_judged = isinstance(passed, bool)
    shows_limit = is_judged and bool(row.rule)
    value, rule = wording.number_in_words(number, row.kind), ""
    if shows_limit and number is not None and limit is not None:
        bound = wording.number_in_words(limit, row.kind)
        if row.kind is Kind.NUMBER:
            value, bound = wording.numbers_apart(number, limit)
        rule = f"{row.in_words(number, limit)} {bound}"
    return SignalLine(
        label=row.label,
        value=value,
        rule=rule,
        passed=passed if isinstance(passed, bool) else None,
        bar=_signal_bar(number, limit)
        if shows_limit and row.kind is Kind.NUMBER
        else None,
        is_shadow=is_shadow,
    )


def _signal_bar(value: float | None, limit: float | None) -> Bar | None:
    if value is None or limit is None:
        return None
    scale = max(1.0, 1.5 * limit, value)
    return Bar(0.0, round(100 * value / scale, 2), round(100 * limit / scale, 2))


def total_time(milliseconds: Mapping[str, float]) -> str:
    return wording.time_in_words(_total(milliseconds))


def _total(milliseconds: Mapping[str, float]) -> float:
    """Return the time of all stages, without parts: "retrieve.sql" is in "retrieve"."""
    return float(sum(ms for stage, ms in milliseconds.items() if "." not in stage))


def stage_times(milliseconds: Mapping[str, float]) -> tuple[StageTimeLine, ...]:
    total = _total(milliseconds) or 1.0
    lines: list[StageTimeLine] = []
    start = 0.0
    # The stored JSON has no order; `wording.STAGES` has that of the pipeline.
    for stage in sorted(milliseconds, key=_stage_order):
        spent = milliseconds[stage]
        name = wording.STAGES[stage][1] if stage in wording.STAGES else stage
        bar = _share(start, spent, total)
        lines.append(StageTimeLine(name, wording.time_in_words(spent), bar))
        # A part comes before its stage and begins where the stage does.
        start += 0.0 if "." in stage else spent
    return tuple(lines)


def _stage_order(stage: str) -> int:
    order = list(wording.STAGES)
    return order.index(stage) if stage in order else len(order)


def _share(start: float, spent: float, total: float) -> Bar:
    return Bar(round(100 * start / total, 2), max(0.75, round(100 * spent / total, 2)))


def recorded_signals(answer: Answer) -> tuple[SignalLine, ...]:
    shadow = in_shadow(answer)
    return tuple(
        _signal_line(signal)
        for signal in answer.signals
        if signal["passed"] is None
        and signal["name"] != _VISIBLE
        and signal["name"] not in shadow
        and signal["value"] is not None
        and not _is_missing(signal)
    )
