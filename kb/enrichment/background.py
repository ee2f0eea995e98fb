"""Enriching as a background job of the kind "kb.enrich"."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User

from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.enrichment.agents import SAMPLES
from kb.enrichment.forms import Writer
from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import clean_line

from .proposals import Plan
from .services import (
    MAX_PER_SEED,
    MAX_PROPOSALS,
    MAX_SAMPLES,
    MAX_SEEDS,
    Progress,
    enrich,
)

KIND: Final = "kb.enrich"
SEED_LIMIT: Final = 1_000
"""Most characters of a seed; one is a question, a heading or a subject."""


def make_plan(
    *,
    knowledge_base: KnowledgeBase,
    audience: Audience,
    seeds: Sequence[str],
    per_seed: int,
    most: int,
    samples: int = SAMPLES,
    seed: int = 0,
    job_id: UUID | None = None,
) -> Plan:
    """Return a plan whose numbers are within their bounds; empty seeds are left out.

    Raises:
        InvalidKnowledgeError: There is no seed, or a number or a seed is out of bounds.
    """
    lines = dict.fromkeys(
        clean_line(text, field="seeds", limit=SEED_LIMIT)
        for text in seeds
        if text.strip()
    )
    if not lines:
        raise InvalidKnowledgeError("seeds", "seeds are missing; give one a line.")
    for field, value, lowest, highest in (
        ("seeds", len(lines), 1, MAX_SEEDS),
        ("per_seed", per_seed, 0, MAX_PER_SEED),
        ("count", most, 1, MAX_PROPOSALS),
        ("samples", samples, 1, MAX_SAMPLES),
    ):
        if not lowest <= value <= highest:
            raise InvalidKnowledgeError(
                field, f"{field} {value} is not between {lowest} and {highest}."
            )
    return Plan(
        knowledge_base=knowledge_base,
        audience=audience,
        seeds=tuple(lines),
        per_seed=per_seed,
        most=most,
        samples=samples,
        seed=seed,
        job_id=job_id,
    )


def start_enrichment(plan: Plan, *, by: User) -> Job:
    parameters = {
        "knowledge_base": plan.knowledge_base.slug,
        "audience": plan.audience.slug,
        "seeds": list(plan.seeds),
        "per_seed": plan.per_seed,
        "count": plan.most,
        "samples": plan.samples,
        "seed": plan.seed,
    }
    return enqueue(KIND, parameters, owner=by, total=len(plan.seeds))


def enrich_in_background(
    run: JobRun, *, load_writer: Callable[[], Writer]
) -> dict[str, object]:
    """Propose entries as the job's parameters say; see `start_enrichment`.

    A batch's proposals and the job's progress are written in one step: whatever happens,
    the job goes on behind the last of them, and nothing is proposed twice.
    """
    plan = _plan(run)
    progress = _progress(run.cursor)

    @contextmanager
    def writing() -> Iterator[None]:
        with run.step() as step:
            yield
            step.advance(
                done=progress.seeds, total=len(plan.seeds), cursor=_as_json(progress)
            )

    for _ in enrich(plan, load_writer(), writing=writing, after=progress):
        pass
    return _as_json(progress)


def _plan(run: JobRun) -> Plan:
    given = run.parameters
    slug, audience = given.get("knowledge_base"), given.get("audience")
    found = KnowledgeBase.objects.filter(slug=slug).first()
    if found is None:
        raise InvalidKnowledgeError(
            "knowledge_base", f"There is no knowledge base {slug!r}."
        )
    seen_by = Audience.objects.filter(slug=audience).first()
    if seen_by is None:
        raise InvalidKnowledgeError("audience", f"There is no audience {audience!r}.")
    seeds = given.get("seeds")
    return make_plan(
        knowledge_base=found,
        audience=seen_by,
        seeds=[str(text) for text in seeds] if isinstance(seeds, list) else [],
        per_seed=_number(given, "per_seed", 3),
        most=_number(given, "count", 100),
        samples=_number(given, "samples", SAMPLES),
        seed=_number(given, "seed", 0),
        job_id=run.job_id,
    )


def _number(given: Mapping[str, object], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int):
        raise InvalidKnowledgeError(name, f"{name} {value!r} is not a whole number.")
    return value


def _progress(cursor: Mapping[str, object]) -> Progress:
    counts = cursor.get("left_out")
    return Progress(
        seeds=int(str(cursor.get("seeds", 0))),
        proposed=int(str(cursor.get("proposed", 0))),
        counts=Counter(counts if isinstance(counts, dict) else {}),
    )


def _as_json(progress: Progress) -> dict[str, object]:
    return {
        "seeds": progress.seeds,
        "proposed": progress.proposed,
        "left_out": dict(progress.counts),
    }
