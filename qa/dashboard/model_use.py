"""Which models were used in a period: answers, time, tokens and their cost."""

from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from django.conf import settings
from django.db.models import Max, Sum

from kb.embedding.models import EmbeddingModel
from probes.models import Probe
from qa.dashboard.models import DailyModel
from qa.dashboard.traffic import MODEL_GROWTH, Percentiles, Scope, in_scope, percentiles

Kind = DailyModel.Kind
_WRITERS = (Kind.LANGUAGE_MODEL, Kind.OWN_KNOWLEDGE)
_FINGERPRINT = 12  # characters that pages show
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelUse:
    """How much one model was used.

    Attributes:
        name: The last part of a directory; "" if only the fingerprint is known.
        cost: In the currency of NESCIO_TOKEN_PRICES; None without a price.
    """

    kind: Kind
    fingerprint: str
    name: str
    answers: int
    latency: Percentiles
    tokens_read: int
    tokens_written: int
    cost: float | None

    @property
    def shown_name(self) -> str:
        return self.name or self.fingerprint[:_FINGERPRINT]


def read_model_use(scope: Scope) -> tuple[ModelUse, ...]:
    """Add up the period's days: by kind, the most used models first (three queries)."""
    rows = in_scope(DailyModel.objects.all(), scope)
    grouped = rows.values_list("kind", "fingerprint", "bucket").annotate(
        Sum("answers"), Sum("tokens_read"), Sum("tokens_written"), Max("day")
    )
    buckets: dict[tuple[str, str], Counter[int]] = {}
    tokens: dict[tuple[str, str], tuple[int, int]] = {}
    last_used: dict[tuple[str, str], date] = {}
    for kind, fingerprint, bucket, answers, read, written, day in grouped:
        key = (kind, fingerprint)
        buckets.setdefault(key, Counter())[bucket] += answers
        before = tokens.get(key, (0, 0))
        tokens[key] = (before[0] + read, before[1] + written)
        last_used[key] = max(day, last_used.get(key, day))
    latest = {
        max(keys, key=lambda key: (last_used[key], buckets[key].total()))[1]
        for kind in _WRITERS
        if (keys := [key for key in buckets if key[0] == kind])
    }
    names = _names({fingerprint for _, fingerprint in buckets}, latest)
    found = [
        _use(Kind(key[0]), key[1], names.get(key[1], ""), counts, *tokens[key])
        for key, counts in buckets.items()
    ]
    order = list(Kind)
    return tuple(
        sorted(found, key=lambda each: (order.index(each.kind), -each.answers))
    )


def _names(fingerprints: set[str], configured: set[str]) -> dict[str, str]:
    """Return the known names by fingerprint; `configured` are the last to answer."""
    embedders = EmbeddingModel.objects.filter(fingerprint__in=fingerprints)
    probed = Probe.objects.filter(language_model__in=fingerprints)
    return {
        **dict.fromkeys(configured, settings.LANGUAGE_MODEL),
        **dict(probed.values_list("language_model", "language_model_name")),
        **dict(embedders.values_list("fingerprint", "name")),
    }


def _use(
    kind: Kind,
    fingerprint: str,
    name: str,
    counts: Counter[int],
    read: int,
    written: int,
) -> ModelUse:
    latency = percentiles(counts, MODEL_GROWTH)
    if latency is None:
        raise ValueError(f"No answer is counted for the model {fingerprint}.")
    prices: dict[str, tuple[float, float]] = settings.TOKEN_PRICES
    price = prices.get(name) or prices.get(fingerprint[:_FINGERPRINT])
    if kind not in _WRITERS:  # tokens of others are not counted
        price = None
    return ModelUse(
        kind,
        fingerprint,
        Path(name).name if name.startswith("/") else name,
        counts.total(),
        latency,
        read,
        written,
        (read * price[0] + written * price[1]) / _MILLION if price else None,
    )
