"""Enrichment as a background job of the kind "kb.enrich"."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from django.contrib.auth.models import User

from accounts.roles import Role, has_role_in
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase, check_writable
from kb.enrichment.forms import Writer
from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import clean_line

from . import services
from .proposals import Plan

KIND: Final = "kb.enrich"
SEED_LIMIT: Final = 1_000
"""Most characters of a seed, which is a question, a heading or a subject."""


def checked(plan: Plan) -> Plan:
    """Return the plan with its limits checked and empty seeds removed.

    Raises:
        InvalidKnowledgeError: There is no seed, or a number or a seed is out of bounds.
    """
    lines = dict.fromkeys(
        clean_line(text, field="seeds", limit=SEED_LIMIT)
        for text in plan.seeds
        if text.strip()
    )
    if not lines:
        raise InvalidKnowledgeError("seeds", "seeds are missing; enter one per line.")
    for field, value, lowest, highest in (
        ("seeds", len(lines), 1, services.MAX_SEEDS),
        ("per_seed", plan.per_seed, 0, services.MAX_PER_SEED),
        ("count", plan.count, 1, services.MAX_PROPOSALS),
        ("samples", plan.samples, 1, services.MAX_SAMPLES),
    ):
        if not lowest <= value <= highest:
            raise InvalidKnowledgeError(
                field, f"{field} {value} is not between {lowest} and {highest}."
            )
    return replace(plan, seeds=tuple(lines))


_PARAMETERS: Final = ("seeds", "per_seed", "count", "samples", "seed")


def start_enrichment(plan: Plan, *, by: User | None) -> Job:
    check_writable(by, plan.knowledge_base.pk)
    parameters = {
        "knowledge_base": plan.knowledge_base.slug,
        "audience": plan.audience.slug,
        **{name: getattr(plan, name) for name in _PARAMETERS},
    }
    return enqueue(KIND, parameters, owner=by, total=len(plan.seeds))


def enrich_in_background(
    run: JobRun, *, load_writer: Callable[[], Writer]
) -> dict[str, object]:
    """Propose entries as the job's parameters request; see `start_enrichment`.

    A batch's proposals and the job's progress are written in one step, so whatever
    happens the job continues after the last of them, and nothing is proposed twice.
    """
    plan = _plan(run)
    base = plan.knowledge_base
    owner = User.objects.filter(pk=run.owner_id or 0).first()
    if owner is not None and not has_role_in(owner, Role.CURATOR, base.pk):
        raise InvalidKnowledgeError(
            "owner", f"{owner}, the owner of the job, is no longer a curator of {base}."
        )
    progress = _progress(run.cursor)

    @contextmanager
    def writing() -> Iterator[None]:
        with run.step() as step:
            yield
            step.advance(
                done=progress.seeds, total=len(plan.seeds), cursor=_as_json(progress)
            )

    for _ in services.enrich(plan, load_writer(), writing=writing, after=progress):
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
    found.check_in_use()
    seen_by = Audience.objects.filter(slug=audience).first()
    if seen_by is None:
        raise InvalidKnowledgeError("audience", f"There is no audience {audience!r}.")
    chosen = {name: given[name] for name in _PARAMETERS if name in given}
    return checked(
        Plan(knowledge_base=found, audience=seen_by, job_id=run.job_id, **chosen)
    )


def _progress(cursor: Mapping[str, object]) -> services.Progress:
    counts = cursor.get("left_out")
    return services.Progress(
        seeds=int(str(cursor.get("seeds", 0))),
        proposed=int(str(cursor.get("proposed", 0))),
        counts=Counter(counts if isinstance(counts, dict) else {}),
    )


def _as_json(progress: services.Progress) -> dict[str, object]:
    return {
        "seeds": progress.seeds,
        "proposed": progress.proposed,
        "left_out": dict(progress.counts),
    }
