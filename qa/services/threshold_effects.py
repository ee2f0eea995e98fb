"""Reads for trying thresholds: the runs that measured, and what agents really asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, JSONField, OuterRef, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.utils import timezone

from kb.models import KnowledgeBase
from qa.evaluation.effects import LoggedAnswer
from qa.models import Answer, DriftReading, EvaluationRun, Vote
from qa.pipeline.gates import Reason

PERIOD = timedelta(days=30)
MOST_LOGGED = 20_000

# Only names and values leave the database: a third of what is stored.
_FLAT_SIGNALS = """(
    SELECT jsonb_object_agg(s->>'name', s->'value')
    FROM jsonb_array_elements(qa_answer.signals) s
)"""


@dataclass(frozen=True, slots=True)
class Log:
    """What was asked of late and can be played again.

    Attributes:
        answers: Newest first.
        since: When the period began.
        asked: All questions decided in the period.
        other_models: Of the newest, left out: other models or probes measured them, and
            numbers of two of them can't be held against one threshold.
        refused_stale: Of the newest, left out: refused for the policy was stale.
    """

    answers: tuple[LoggedAnswer, ...]
    since: datetime
    asked: int
    other_models: int
    refused_stale: int

    @property
    def is_sample(self) -> bool:
        """Whether the period holds more than was read."""
        left_out = self.other_models + self.refused_stale
        return self.asked > len(self.answers) + left_out


def runs_of(knowledge_base: KnowledgeBase) -> QuerySet[EvaluationRun]:
    """The runs that asked this knowledge base, newest first, without their reports."""
    runs = EvaluationRun.objects.filter(knowledge_base=knowledge_base)
    return runs.defer("report").select_related("policy")


def has_drifted() -> Subquery:
    """What the last look at live questions found of a policy's certificate, or NULL.

    A look that had too few answers to compare found nothing.
    """
    looks = DriftReading.objects.filter(certificate__policy=OuterRef("pk"))
    looks = looks.exclude(signals={})
    return Subquery(looks.order_by("-checked_at", "-pk").values("has_drifted")[:1])


def logged_of(knowledge_base: KnowledgeBase, *, most: int = MOST_LOGGED) -> Log:
    """Return the newest questions of the last 30 days, evaluations left out.

    One query, and a second one to count where there are more than `most`.

    Args:
        most: How many are read at most; 20,000 take some 0.4 seconds.
    """
    since = timezone.now() - PERIOD
    rows = Answer.objects.live().filter(
        knowledge_base=knowledge_base,
        created_at__gte=since,
        outcome__in=(Answer.Outcome.ANSWERED, Answer.Outcome.REFUSED),
    )
    read = list(_measured(rows.order_by("-created_at")[:most]))
    asked = rows.count() if len(read) == most else len(read)
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
    return Log(
        answers=tuple(row.answer for row in current),
        since=since,
        asked=asked,
        other_models=len(read) - len(played),
        refused_stale=len(played) - len(current),
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    answer: LoggedAnswer
    reason: str
    embedder: str
    language_model: str
    probes: str


def _measured(rows: QuerySet[Answer]) -> Iterator[_Measured]:
    down = Vote.objects.filter(answer=OuterRef("pk"), is_up=False)
    flattened = RawSQL(_FLAT_SIGNALS, (), output_field=JSONField())  # noqa: S611  # own constant
    found = rows.annotate(flat=flattened, has_down=Exists(down))
    models = ("embedder", "language_model", "probes")
    names = ("flat", "outcome", "has_down", "reason", *models)
    for flat, outcome, has_down, reason, *by in found.values_list(*names):
        was_answered = outcome == Answer.Outcome.ANSWERED
        answer = LoggedAnswer(flat or {}, was_answered, has_down)
        yield _Measured(answer, reason, *by)
