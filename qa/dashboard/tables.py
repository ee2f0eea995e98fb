"""The dashboard's tables: figures of a few rows that a chart would not make clearer."""

from collections.abc import Sequence
from dataclasses import dataclass

from qa.answers.wording import GATES, time_in_words
from qa.dashboard.charts import percent
from qa.dashboard.model_use import ModelUse
from qa.dashboard.shadows import ShadowGate


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shadow_table(shadows: Sequence[ShadowGate]) -> Table | None:
    """Return the table of shadow gates, or None if none has judged an answer."""
    if not shadows:
        return None
    is_reviewed = any(each.right or each.wrong for each in shadows)
    is_voted_on = any(each.up or each.down for each in shadows)
    note = "Of answers that were shown."
    if is_reviewed or is_voted_on:
        note += " Reviews and votes are of those that the gate would have refused."
    return Table(
        "Gates in shadow: what they would have refused",
        note,
        (
            "gate", "answers judged", "would have refused", "share",
            *(("reviewed right", "reviewed wrong") if is_reviewed else ()),
            *(("thumbs up", "thumbs down") if is_voted_on else ()),
        ),
        tuple(
            (
                GATES[each.gate].name,
                f"{each.answers:,}",
                f"{each.refused:,}",
                percent(each.share),
                *((f"{each.right:,}", f"{each.wrong:,}") if is_reviewed else ()),
                *((f"{each.up:,}", f"{each.down:,}") if is_voted_on else ()),
            )
            for each in shadows
        ),
    )  # fmt: skip


def model_table(models: Sequence[ModelUse]) -> Table | None:
    """Return the table of models, or None if none was used; with costs if priced."""
    if not models:
        return None
    has_costs = any(each.cost is not None for each in models)
    note = "Time is the model's part of an answer or a refusal."
    if has_costs:
        note += " Costs are of the tokens, at the prices of NESCIO_TOKEN_PRICES."
    return Table(
        "Models: time and tokens",
        note,
        (
            "model", "answers", "half within", "95 % within", "tokens read",
            "tokens written", *(("cost",) if has_costs else ()),
        ),
        tuple(
            (
                f"{each.kind.label}: {each.shown_name}",
                f"{each.answers:,}",
                time_in_words(each.latency.p50),
                time_in_words(each.latency.p95),
                _tokens(each.tokens_read),
                _tokens(each.tokens_written),
                *((_cost(each.cost),) if has_costs else ()),
            )
            for each in models
        ),
    )  # fmt: skip


def _tokens(count: int) -> str:
    return f"{count:,}" if count else "none"


def _cost(cost: float | None) -> str:
    if cost is None:
        return "none"
    return f"{cost:,.2f}" if cost >= 0.01 or not cost else "under 0.01"
