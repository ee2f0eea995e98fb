"""Following a source in tests: follow, check by a real job, and what there is then."""

import pytest

from jobs.models import Job
from jobs.run import run_job
from kb.models import Entry, FollowedSource
from kb.sources.checking import follow_in_background
from kb.sources.services import KIND, Following, Rule, check_now, follow_source
from tests.factories import make_audience, make_curator, make_knowledge_base

CARDS = (
    "# Cards\n\nA replacement card costs 12 euros.\n\n"
    "A gold card costs 72 euros a year.\n"
)
ABROAD = "# Abroad\n\nA transfer abroad costs 3 euros.\n"
LOANS = "# Loans\n\nA loan is paid back within 60 months.\n"


def follow(kind: str, address: str, *, by=None, rules=None, **said) -> FollowedSource:
    following = Following(
        name=said.pop("name", "Help"),
        kind=kind,
        address=str(address),
        knowledge_base=make_knowledge_base(),
        rules=[
            Rule(group, make_audience(slug))
            for group, slug in (rules or {"": "everyone"}).items()
        ],
        **said,
    )
    return follow_source(following, by=by or make_curator())


def check(source: FollowedSource, *, by=None, **how) -> dict[str, int]:
    """Check a source by a job; return what was counted, without zeros."""
    job = check_now(source.pk, by=by or make_curator(), **how)
    run_job(job.pk, {KIND: follow_in_background})
    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED, job.error
    source.refresh_from_db()
    return {name: number for name, number in source.counts.items() if number}


def failed(source: FollowedSource, error: type[Exception]) -> str:
    """Check a source that can't be read; return what is said of it."""
    job = check_now(source.pk, by=make_curator())
    with pytest.raises(error):
        run_job(job.pk, {KIND: follow_in_background})
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    source.refresh_from_db()
    assert source.error in job.error
    return source.error


def texts() -> set[str]:
    rows = Entry.objects.exclude(state=Entry.State.RETIRED)
    return {" ".join(text.split()) for text in rows.values_list("text", flat=True)}


def proposed() -> set[str]:
    """Return what is flagged by a source and waits for a decision."""
    rows = Entry.objects.filter(
        flags__source__isnull=False, upkeep__flagged_since__isnull=False
    )
    return {" ".join(text.split()) for text in rows.values_list("text", flat=True)}
