"""Test data that accumulates over years: history, notices, jobs, runs, events."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from accounts.models import ApiToken
from benchmarks.loop_work_sql import WORK
from integrations.events.models import MEANINGS
from integrations.models import Delivery, Endpoint, Event, Widget
from jobs.models import Job
from kb.models import FollowedDocument, FollowedSource, KnowledgeBase
from qa.models import (
    ConfidenceMove,
    EvaluationResult,
    EvaluationRun,
    Notice,
    PastQuestion,
    Policy,
    PolicyActivation,
    RefusalWording,
    Repeat,
    SavedCase,
)
from qa.pipeline.gates import Reason

WRITTEN = (
    ApiToken, Job, FollowedDocument, ConfidenceMove, EvaluationResult, Notice, PastQuestion,
    Repeat, SavedCase, Delivery, Event,
)  # fmt: skip
_VERSIONS = 60


def write_work(values: Mapping[str, Any]) -> None:
    """Write these rows for the knowledge bases and users that `loop_rows.fill` made."""
    reviewer = User.objects.get(pk=values["reviewer"])
    for base in KnowledgeBase.objects.filter(pk__in=values["bases"]):
        _write_versions(base, reviewer)
        _write_few(base, reviewer)
    with connection.cursor() as cursor:
        for statement in WORK:
            cursor.execute(statement, {**values, "colleague": reviewer.pk + 50})


def _write_versions(base: KnowledgeBase, author: User) -> None:
    """Write further versions of the base's policy, with an activation of each."""
    fields = {
        field.attname: getattr(Policy.objects.get(knowledge_base=base), field.attname)
        for field in Policy._meta.local_concrete_fields
        if not field.primary_key
    }
    made = Policy.objects.bulk_create(
        Policy(
            **{
                **fields,
                "version": version,
                "is_active": False,
                "alpha": 0.8 + version / 1000,
            }
        )
        for version in range(2, _VERSIONS + 2)
    )
    PolicyActivation.objects.bulk_create(
        PolicyActivation(
            knowledge_base=base, policy=policy, by=author, at=timezone.now()
        )
        for policy in made
    )


def _write_few(base: KnowledgeBase, owner: User) -> None:
    """Write rows whose number does not grow with the traffic."""
    Widget.objects.bulk_create(
        Widget(
            name=f"{base.slug}-{n}",
            knowledge_base=base,
            origins=["https://example.org"],
        )
        for n in range(10)
    )
    Endpoint.objects.bulk_create(
        Endpoint(name=f"{base.slug} {n}", url=f"https://example.org/{n}", owner=owner,
            knowledge_base=base, types=sorted(MEANINGS))
        for n in range(10)
    )  # fmt: skip
    RefusalWording.objects.create(
        knowledge_base=base,
        language="en",
        reason=Reason.TOO_FAR,
        text="Ask the hotline.",
    )
    FollowedSource.objects.bulk_create(
        FollowedSource(name=f"Terms {n}", kind="folder", address=f"/srv/terms/{n}",
            knowledge_base=base, every_hours=24, owner=owner, checked_at=timezone.now())
        for n in range(10)
    )  # fmt: skip
    EvaluationRun.objects.bulk_create(
        EvaluationRun(suite="own questions", key=f"{base.slug} {n}", state="finished",
            knowledge_base=base, policy=base.policies.earliest("pk"), total=2000,
            started_by=owner, finished_at=timezone.now())
        for n in range(10)
    )  # fmt: skip
