"""The effect that thresholds would have on labelled answers and on recent traffic.

Questions that an enforced gate kept from the language model count as unknown.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet, Subquery, TextField
from django.db.models.expressions import RawSQL
from django.utils import timezone

from accounts.prepared import execute
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.calibration.models import DriftReading
from qa.calibration.thresholds.values import upper_bound
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import (
    Alike,
    BoolArray,
    Columns,
    Table,
    columns_of,
    table_of,
)
from qa.evaluation.models import EvaluationRun
from qa.pipeline.gates import CONFIDENCES, Reason
from qa.pipeline.policy import Policy
from qa.votes.models import Vote

CERTAINTY = 0.95
# Values of distance / confidence; from 1.4 on (the square root of 2) nothing is
# related.
_RATIOS = tuple(step / 10 for step in range(15))
_SHARES = tuple(step / 10 for step in range(10))


@dataclass(frozen=True, slots=True)
class LabelledEffect:
    """Counts of labelled questions; those of unknown outcome are in no other count.

    Due questions should be answered, undue ones refused.
    """

    questions: int
    unknown: int
    shown: int
    wrong: int
    due_shown: int
    due_refused: int
    undue_shown: int
    undue_refused: int

    @property
    def due(self) -> int:
        return self.due_shown + self.due_refused

    @property
    def undue(self) -> int:
        return self.undue_shown + self.undue_refused

    @property
    def risk_bound(self) -> float:
        return upper_bound(self.wrong, self.shown, 1 - CERTAINTY)


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """The effect of one threshold value on the questions of known outcome."""

    threshold: float
    is_own: bool
    shown: int
    wrong: int
    right_masked: int
    questions: int

    @property
    def precision(self) -> float | None:
        return (self.shown - self.wrong) / self.shown if self.shown else None

    @property
    def recall(self) -> float | None:
        right = self.shown - self.wrong + self.right_masked
        return (self.shown - self.wrong) / right if right else None

    @property
    def masked(self) -> float | None:
        return 1 - self.shown / self.questions if self.questions else None


@dataclass(frozen=True, slots=True)
class LoggedEffect:
    """Logged questions whose outcome thresholds would change, and their thumbs down.

    Questions that an enforced gate kept from the model are unknown.
    """

    questions: int
    more_refused: int
    more_refused_down: int
    more_answered: int
    more_answered_down: int
    unknown: int

    @property
    def same(self) -> int:
        changed = self.more_refused + self.more_answered
        return self.questions - changed - self.unknown


class Labelled:
    """Labelled answers as columns; trying many thresholds takes milliseconds."""

    def __init__(self, answers: Sequence[LabelledAnswer]) -> None:
        self._table: Table = table_of(answers)
        self._due = np.array([a.is_answerable is True for a in answers], np.bool_)
        self._undue = np.array([a.is_answerable is False for a in answers], np.bool_)

    def __len__(self) -> int:
        return len(self._table)

    def effect(self, policy: Policy) -> LabelledEffect:
        decided = self._table.decide(policy)
        shown, refused = decided.answered, ~decided.answered & ~decided.unknown
        return LabelledEffect(
            questions=len(self),
            unknown=_count(decided.unknown),
            shown=_count(shown),
            wrong=_count(shown & self._table.wrong),
            due_shown=_count(shown & self._due),
            due_refused=_count(refused & self._due),
            undue_shown=_count(shown & self._undue),
            undue_refused=_count(refused & self._undue),
        )

    def by_alpha(self, policy: Policy) -> tuple[ThresholdRow, ...]:
        return self._rows(policy, "alpha", _RATIOS)

    def by_min_verdict(self, policy: Policy) -> tuple[ThresholdRow, ...]:
        return self._rows(policy, "min_verdict", _SHARES)

    def by_confidence(self, policy: Policy, name: str) -> tuple[ThresholdRow, ...]:
        """Return the rows for one of `CONFIDENCES`, with abstention enforced.

        Empty if no answer has that confidence. Huang et al. (2025),
        "Confidence-Based Response Abstinence", table 2.
        """
        if np.isnan(self._table.values[name]).all():
            return ()
        policy = replace(policy, abstention=True)
        return self._rows(policy, CONFIDENCES[name], _SHARES)

    def _rows(
        self, policy: Policy, field: str, values: Sequence[float]
    ) -> tuple[ThresholdRow, ...]:
        own = getattr(policy, field)
        changes: list[dict[str, Any]] = [{field: v} for v in sorted({*values, own})]
        return tuple(
            self._row(replace(policy, **each), each[field], each[field] == own)
            for each in changes
        )

    def _row(self, policy: Policy, threshold: float, is_own: bool) -> ThresholdRow:
        decided = self._table.decide(policy)
        right, shown = ~self._table.wrong, decided.answered
        return ThresholdRow(
            threshold=threshold,
            is_own=is_own,
            shown=_count(shown),
            wrong=_count(shown & ~right),
            right_masked=_count(right & ~shown & ~decided.unknown),
            questions=_count(~decided.unknown),
        )


def _count(rows: BoolArray) -> int:
    return int(rows.sum())


PERIOD = timedelta(days=30)
MAX_LOGGED = 15_000

# Only names and values are fetched, a third of what is stored; answers that differ only
# in their values come as one row.
_NAMES = RawSQL(
    "jsonb_path_query_array(qa_answer.signals, '$[*].name')::text",
    (),
    output_field=TextField(),
)
_VALUES = RawSQL(
    "jsonb_path_query_array(qa_answer.signals, '$[*].value')::text",
    (),
    output_field=TextField(),
)
_GROUPED = """
SELECT names, string_agg("values", ','), count(*), outcome, has_down, reason, embedder,
       language_model, probes
FROM ({}) answer
GROUP BY names, outcome, has_down, reason, embedder, language_model, probes
ORDER BY max(created_at) DESC
"""


@dataclass(frozen=True, slots=True)
class Log:
    """Recent answers that can be replayed.

    Left out are answers measured by `other_models`, whose numbers are on another scale,
    and refusals because the policy was stale.
    """

    signals: Columns
    was_answered: BoolArray
    has_thumb_down: BoolArray
    since: datetime
    asked: int
    other_models: int
    refused_stale: int

    def __len__(self) -> int:
        return len(self.signals)

    @property
    def is_sample(self) -> bool:
        left_out = self.other_models + self.refused_stale
        return self.asked > len(self) + left_out

    def effect(self, policy: Policy) -> LoggedEffect:
        decided = self.signals.decide(policy)
        more_refused = self.was_answered & ~decided.answered & ~decided.unknown
        more_answered = ~self.was_answered & decided.answered
        return LoggedEffect(
            questions=len(self),
            more_refused=_count(more_refused),
            more_refused_down=_count(more_refused & self.has_thumb_down),
            more_answered=_count(more_answered),
            more_answered_down=_count(more_answered & self.has_thumb_down),
            unknown=_count(decided.unknown),
        )


def runs_of(knowledge_base: KnowledgeBase) -> QuerySet[EvaluationRun]:
    runs = EvaluationRun.objects.filter(knowledge_base=knowledge_base)
    return runs.defer("report").select_related("policy")


def has_drifted() -> Subquery:
    """Return whether the last check with enough answers found drift, as a subquery.

    NULL if there was no such check.
    """
    looks = DriftReading.objects.filter(certificate__policy=OuterRef("pk"))
    looks = looks.exclude(signals={})
    return Subquery(looks.order_by("-checked_at", "-pk").values("has_drifted")[:1])


def logged_of(knowledge_base: KnowledgeBase, *, most: int = MAX_LOGGED) -> Log:
    """Return the newest `most` live questions of the last 30 days.

    It takes one query, and a second one to count if there may be more.
    """
    since = timezone.now() - PERIOD
    rows = Answer.objects.live().filter(
        knowledge_base=knowledge_base,
        created_at__gte=since,
        outcome__in=(Answer.Outcome.ANSWERED, Answer.Outcome.REFUSED),
    )
    down = Vote.objects.filter(answer=OuterRef("pk"), is_up=False)
    measured = rows.annotate(names=_NAMES, values=_VALUES, has_down=Exists(down))
    newest = measured.order_by("-created_at").values(
        "names", "values", "outcome", "has_down", "reason", "embedder",
        "language_model", "probes", "created_at",
    )[:most]  # fmt: skip
    query, parameters = newest.query.sql_with_params()
    read = [_Alike(*row) for row in execute(_GROUPED.format(query), parameters)]
    asked = _count_answers(read)
    if asked == most:
        asked = rows.count()
    embedder = next((row.embedder for row in read if row.embedder), "")
    model = next((row.language_model for row in read if row.language_model), "")
    probes = next((row.probes for row in read if row.probes), "")
    played = [
        row for row in read
        if row.embedder in ("", embedder)
        and row.language_model in ("", model)
        and row.probes in ("", probes)
    ]  # fmt: skip
    current = [row for row in played if row.reason != Reason.POLICY_STALE]
    counts = [row.answers for row in current]
    answered = [row.outcome == Answer.Outcome.ANSWERED for row in current]
    voted_down = [row.has_thumb_down for row in current]
    return Log(
        signals=columns_of(sum(counts), _parsed(current)),
        was_answered=np.repeat(np.array(answered, np.bool_), counts),
        has_thumb_down=np.repeat(np.array(voted_down, np.bool_), counts),
        since=since,
        asked=asked,
        other_models=_count_answers(read) - _count_answers(played),
        refused_stale=_count_answers(played) - _count_answers(current),
    )


class _Alike(NamedTuple):
    """Answers that differ only in the values of their signals."""

    names: str
    values: str
    answers: int
    outcome: str
    has_thumb_down: bool
    reason: str
    embedder: str
    language_model: str
    probes: str


def _count_answers(rows: Sequence[_Alike]) -> int:
    return sum(row.answers for row in rows)


def _parsed(rows: Iterable[_Alike]) -> Iterator[Alike]:
    begin = 0
    for row in rows:
        end = begin + row.answers
        values = json.loads(f"[{row.values}]")
        yield json.loads(row.names), slice(begin, end), values
        begin = end
