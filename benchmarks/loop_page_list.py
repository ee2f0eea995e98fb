"""The pages and REST lists measured by `benchmarks.loop_pages`, and who opens each."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

PASSWORD = "a long enough benchmark password"  # of a throwaway database
READERS = ("reviewer", "agent", "root", "expert", "curator", "local")
"""Users who sign in; the last is a curator of a single knowledge base."""
PROGRAM = "directory"  # authenticates with a token that may manage users


@dataclass(frozen=True, slots=True)
class Page:
    """One address; of a stream only the first bytes are read."""

    name: str
    address: str
    reader: str = "reviewer"
    is_stream: bool = False
    is_part: bool = False  # a part that HTMX fetches while the user types


def pages() -> list[Page]:
    """Return every page, with the ids of existing rows in the addresses."""
    return [
        *_desk(),
        *_inbox(),
        *_dashboard(),
        *_answers(),
        *_votes(),
        *_escalations(),
        *_reviews(),
        *_gaps(),
        *_knowledge(),
        *_rest(),
    ]


def _desk() -> list[Page]:
    return [
        Page("page: ask", "/", "agent"),
        Page("page: help", "/help", "agent"),
        Page("page: tokens", "/tokens", "agent"),
        Page("page: notices", "/notices", "agent"),
        Page("page: unread notices", "/notices/unread", "agent"),
        Page("page: playground", "/playground"),
        Page("page: playground of a base", "/playground?knowledge_base=loans"),
    ]


def _inbox() -> list[Page]:
    from qa.inbox.models import Kind
    from qa.inbox.waiting import Scope

    return [
        Page("page: inbox", "/inbox"),
        Page("page: inbox, tenth page", "/inbox?page=10"),
        Page("page: inbox, how many", "/inbox/count"),
        *(Page(f"page: inbox, {each}", f"/inbox?whose={each}") for each in Scope),
        *(Page(f"page: inbox, {each}", f"/inbox?kind={each}") for each in Kind),
        Page("REST: inbox", "/api/v1/inbox"),
    ]


def _dashboard() -> list[Page]:
    page = "/admin/qa/answer/dashboard/"
    return [
        Page("admin: first page", "/admin/"),
        Page("dashboard: 30 days", page),
        Page("dashboard: a year", f"{page}?days=365"),
        Page("dashboard: one base", f"{page}?days=90&knowledge_base=loans"),
        Page("dashboard: one tag", f"{page}?days=90&tag=product_line-1"),
        Page("REST: dashboard", "/api/v1/dashboard?days=90"),
    ]


def _answers() -> list[Page]:
    from django.utils import timezone

    from qa.models import Answer

    recent = timezone.now() - timedelta(days=7)
    answered = Answer.objects.filter(outcome="answered", created_at__lt=recent).first()
    own = Answer.objects.filter(asker__username="agent", outcome="answered").first()
    if answered is None or own is None:
        msg = "There are no answers."
        raise RuntimeError(msg)
    week = urlencode(
        {"created_at__gte": recent.isoformat(), "outcome__exact": "refused"}
    )
    return [
        Page("admin: answers", "/admin/qa/answer/"),
        Page("admin: answers, hundredth page", "/admin/qa/answer/?p=100"),
        Page("admin: answers, failed", "/admin/qa/answer/?outcome__exact=failed"),
        Page("admin: answers, by gate", "/admin/qa/answer/?gate__exact=abstention"),
        Page("admin: answers, refused this week", f"/admin/qa/answer/?{week}"),
        Page("admin: answers, voted down", "/admin/qa/answer/?votes__is_up__exact=0"),
        Page("admin: answers, a common word", "/admin/qa/answer/?q=card"),
        Page("admin: answers, a rare word", "/admin/qa/answer/?q=123456"),
        Page("admin: one answer", f"/admin/qa/answer/{answered.pk}/change/"),
        Page("page: one's questions", "/answers", "agent"),
        Page("page: everybody's questions", "/answers"),
        Page("page: one's questions, last page", "/answers?page=999999", "agent"),
        Page("page: one's questions, a word", "/answers?q=card", "agent"),
        Page("page: one's questions, no such word", "/answers?q=zeppelin", "agent"),
        Page(
            "page: one's questions, not answered", "/answers?outcome=refused", "agent"
        ),
        Page("page: one answer", f"/answers/{own.pk}", "agent"),
        Page("REST: answers", "/api/v1/answers", "agent"),
        Page("REST: everybody's answers", "/api/v1/answers"),
        Page("REST: answers that failed", "/api/v1/answers?outcome=failed"),
        Page("REST: one answer", f"/api/v1/answers/{answered.pk}"),
    ]


def _votes() -> list[Page]:
    from qa.models import Vote

    vote = Vote.objects.order_by("pk").first()
    if vote is None:
        msg = "There are no votes."
        raise RuntimeError(msg)
    return [
        Page("admin: inbox of votes", "/admin/qa/vote/"),
        Page("admin: open votes", "/admin/qa/vote/?state=open"),
        Page("admin: votes, by reason", "/admin/qa/vote/?what=wrong"),
        Page(
            "admin: votes on refusals", "/admin/qa/vote/?answer__outcome__exact=refused"
        ),
        Page("admin: votes, a rare word", "/admin/qa/vote/?q=123456"),
        Page("admin: one vote", f"/admin/qa/vote/{vote.pk}/change/"),
        Page("REST: votes", "/api/v1/votes"),
        Page("REST: votes on refusals", "/api/v1/votes?outcome=refused&rating=down"),
        Page(
            "REST: export of votes, first bytes", "/api/v1/votes/export", is_stream=True
        ),
    ]


def _escalations() -> list[Page]:
    from qa.models import Escalation

    escalation = Escalation.objects.order_by("pk").first()
    if escalation is None:
        msg = "There are no escalations."
        raise RuntimeError(msg)
    return [
        Page("admin: escalations", "/admin/qa/escalation/"),
        Page("admin: one escalation", f"/admin/qa/escalation/{escalation.pk}/change/"),
        Page("REST: escalations", "/api/v1/escalations"),
        Page("REST: escalations of one's own", "/api/v1/escalations", "agent"),
    ]


def _reviews() -> list[Page]:
    from qa.models import Review

    waiting = Review.objects.filter(state="waiting", stratum__isnull=False).first()
    if waiting is None:
        msg = "There are no reviews."
        raise RuntimeError(msg)
    return [
        Page("admin: queue of reviews", "/admin/qa/review/"),
        Page("admin: one review", f"/admin/qa/review/{waiting.pk}/change/"),
        Page("admin: samples", "/admin/qa/reviewsample/"),
        Page("REST: reviews", "/api/v1/reviews"),
        Page("REST: agreement", "/api/v1/reviews/agreement"),
        Page(
            "REST: export of reviews, first bytes",
            "/api/v1/reviews/export",
            is_stream=True,
        ),
    ]


def _gaps() -> list[Page]:
    from qa.models import Gap

    gap = Gap.objects.order_by("pk").first()
    if gap is None:
        msg = "There are no gaps."
        raise RuntimeError(msg)
    return [
        Page("admin: gaps", "/admin/qa/gap/?state__exact=open"),
        Page("admin: one gap", f"/admin/qa/gap/{gap.pk}/change/"),
        Page("REST: gaps", "/api/v1/gaps"),
        Page("REST: one gap", f"/api/v1/gaps/{gap.pk}"),
    ]


def _knowledge() -> list[Page]:
    from kb.models import Entry

    seen = Entry.objects.filter(audience__everyone=True, state="verified")
    entry = seen.order_by("pk").last()
    document = entry and entry.document
    if entry is None or document is None:
        msg = "There are no entries."
        raise RuntimeError(msg)
    looked_for = {
        "a common word": "fee", "a rare word": "12345", "a misspelt word": "chargd",
        "nothing that is there": "zeppelin",
    }  # fmt: skip
    return [
        Page("page: knowledge", "/knowledge", "agent"),
        *(
            Page(f"{name}, {what}", f"{address}?q={words}", reader)
            for name, address, reader in (
                ("page: knowledge", "/knowledge", "agent"),
                ("admin: entries", "/admin/kb/entry/", "reviewer"),
                ("REST: entries", "/api/v1/entries", "agent"),
            )
            for what, words in looked_for.items()
        ),
        *(
            Page(
                f"search as one types: {words}",
                f"/knowledge?q={words}",
                "agent",
                is_part=True,
            )
            for words in ("f", "fee", "fee of cont", "contract 12345", "chargd abraod")
        ),
        Page("page: knowledge, last page", "/knowledge?page=999999", "agent"),
        Page("page: knowledge, verified", "/knowledge?state=verified", "agent"),
        Page(
            "page: knowledge, a tag", "/knowledge?product_line=product_line-1", "agent"
        ),
        Page("page: a document", f"/knowledge/documents/{document.pk}", "agent"),
        Page("page: an entry", f"/knowledge/entries/{entry.pk}", "agent"),
        Page("page: profile", "/profile", "agent"),
        Page("page: an entry, edited", f"/knowledge/entries/{entry.pk}/edit"),
        Page("admin: entries, hundredth page", "/admin/kb/entry/?p=100"),
        Page("admin: entries to review", "/admin/kb/entry/?state__exact=needs_review"),
    ]


def _rest() -> list[Page]:
    from kb.models import Document, Entry, FollowedSource, Import, Proposal
    from qa.models import Escalation, Policy, Review

    rows = {
        "documents": Document.objects.filter(audience__everyone=True),
        "entries": Entry.objects.filter(audience__everyone=True, state="verified"),
        "imports": Import.objects.all(),
        "sources": FollowedSource.objects.all(),
        "proposals": Proposal.objects.all(),
        "escalations": Escalation.objects.all(),
        "reviews": Review.objects.filter(state="waiting"),
        "policies": Policy.objects.all(),
    }
    lists = (
        "jobs", "entries/due", "documents", "imports", "sources", "exports", "tags", "audiences",
        "conflicts", "proposals", "notices", "reviews/samples", "policies", "drift", "tokens",
        "knowledge-bases",
    )  # fmt: skip
    last = [
        (name, found.latest("pk").pk) for name, found in rows.items() if found.exists()
    ]
    entry = dict(last)["entries"]
    return [
        *(Page(f"REST: {name}", f"/api/v1/{name}") for name in lists),
        *(Page(f"REST: {name}, one", f"/api/v1/{name}/{pk}") for name, pk in last),
        Page("REST: revisions", f"/api/v1/entries/{entry}/revisions"),
        Page("REST: how else it is asked", f"/api/v1/entries/{entry}/also_asked"),
        Page("REST: an audience", "/api/v1/audiences/all"),
        Page("REST: users", "/api/v1/users", PROGRAM),
        Page("REST: a user", "/api/v1/users/agent", PROGRAM),
        Page("REST: schema", "/api/v1/schema"),
        Page("page: REST's documentation", "/api/v1/docs"),
        Page("OpenAI: models", "/v1/models"),
    ]
