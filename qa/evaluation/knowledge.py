"""The knowledge of data sets, written once through the usual services.

Only the evaluation's own user may see it, so that no page answers from a data set.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.db.models import Count, Max

from accounts.acting import as_owner
from accounts.ids import digest
from accounts.roles import Role
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase, Section
from kb.documents.services import SectionNode, create_document
from kb.entries.models import Entry, Revision
from kb.entries.services import create_entries
from kb.entries.values import UNVERIFIED_CONFIDENCE, NewEntry
from kb.exceptions import KnowledgeBaseNotFoundError
from kb.text.cleaning import QUESTION_LIMIT, TEXT_LIMIT
from qa.answers.questions import find_knowledge_base
from qa.exceptions import EvaluationDataError
from qa.pipeline.values import clean_text

from .cases import GROUPS_JOIN

USERNAME = "evaluation"
# Prefix of the slugs of knowledge bases created by evaluations.
PREFIX = "eval-"
EMPTY = f"{PREFIX}empty"
_AUDIENCE = "evaluation"
_MAX_NAME_LENGTH = 150  # of a username
_ENTRIES_AT_ONCE = 256  # per transaction; a kill loses at most the last one

Loading = Callable[[int, int], None]
"""Callback while knowledge is loaded: (sources written, sources in total)."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement, or with `question` the exact answer to it.

    `confidence` is None for a verified one. All texts are cleaned like questions, which
    removes a data set's control characters.
    """

    text: str
    question: str = ""
    key: str = ""
    confidence: float | None = None
    heading: str = ""  # of its section; "" for none

    def __post_init__(self) -> None:
        for name in ("text", "question", "heading"):
            object.__setattr__(self, name, clean_text(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Source:
    key: str
    title: str
    facts: Sequence[Fact]


def ensure_knowledge(
    slug: str, name: str, sources: Sequence[Source], *, loading: Loading | None = None
) -> KnowledgeBase:
    """Return the knowledge base `slug` with the facts of `sources` loaded.

    `slug` must contain a digest of the data: sources that exist are not written again,
    so that interrupted loading resumes. Two processes that load at once write
    everything once.
    """
    knowledge_base, _ = KnowledgeBase.objects.get_or_create(
        slug=slug, defaults={"name": name}
    )
    done = _written(knowledge_base)
    if len(done) >= len(sources):
        return knowledge_base
    for batch in _batches([source for source in sources if source.key not in done]):
        if loading:
            loading(len(done), len(sources))
        _write(knowledge_base, batch)
        done.update(source.key for source in batch)
    if loading:
        loading(len(done), len(sources))
    with as_owner("statistics"), connection.cursor() as cursor:
        cursor.execute("ANALYZE kb_entry, kb_entryembedding, kb_revision")
    return knowledge_base


def given_or_empty(slug: str) -> KnowledgeBase:
    """Return the knowledge base `slug`, or an empty one if `slug` is ""."""
    if not slug:
        return ensure_knowledge(EMPTY, "Evaluation: nothing", ())
    try:
        return find_knowledge_base(slug)
    except KnowledgeBaseNotFoundError as error:
        raise EvaluationDataError(str(error)) from error


def asked_of(knowledge_base: KnowledgeBase) -> dict[str, str]:
    return {"knowledge_base": knowledge_base.slug, "knowledge": _state(knowledge_base)}


def evaluation_user(groups: Sequence[str] = ()) -> User:
    """Return the evaluations' agent, who can't sign in; a separate one per `groups`."""
    there = set(Group.objects.filter(name__in=groups).values_list("name", flat=True))
    missing = [name for name in groups if name not in there]
    if missing:
        raise EvaluationDataError(f"There is no group {missing[0]!r}; create it first.")
    # Each list needs its own username, or a second one would use the groups of the
    # first.
    username = f"{USERNAME}-{GROUPS_JOIN.join(groups)}" if groups else USERNAME
    is_joined = any(GROUPS_JOIN in name for name in groups)
    if len(username) > _MAX_NAME_LENGTH or is_joined:
        username = f"{USERNAME}-{digest(*groups)}"
    return ensure_agent(username, (USERNAME, *groups))


def ensure_agent(username: str, groups: Iterable[str]) -> User:
    user, is_new = User.objects.get_or_create(username=username)
    if is_new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
        names = (Role.AGENT.value, *groups)
        user.groups.set([Group.objects.get_or_create(name=n)[0] for n in names])
    return user


def _state(knowledge_base: KnowledgeBase) -> str:
    """Return a state that changes with every write: entry count and last revision."""
    entries = Entry.objects.filter(knowledge_base=knowledge_base).aggregate(
        n=Count("pk")
    )
    last = Revision.objects.filter(entry__knowledge_base=knowledge_base)
    return f"{entries['n']} entries, revision {last.aggregate(last=Max('pk'))['last']}"


def _written(knowledge_base: KnowledgeBase) -> set[str]:
    rows = Document.objects.filter(knowledge_base=knowledge_base)
    return set(rows.values_list("source", flat=True))


def _batches(sources: Iterable[Source]) -> Iterator[list[Source]]:
    batch: list[Source] = []
    size = 0
    for source in sources:
        batch.append(source)
        size += len(source.facts)
        if size >= _ENTRIES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@transaction.atomic
def _write(knowledge_base: KnowledgeBase, sources: Sequence[Source]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext(%s))", [knowledge_base.slug]
        )
    done = _written(knowledge_base)  # another process may have written meanwhile
    author, audience = evaluation_user(), ensure_audience()
    new: list[NewEntry] = []
    for source in sources:
        if source.key in done:
            continue
        document = create_document(
            knowledge_base=knowledge_base,
            title=clean_text(source.title),
            source=source.key,
            audience=audience,
            author=author,
            sections=[
                SectionNode(heading)
                for heading in dict.fromkeys(fact.heading for fact in source.facts)
                if heading
            ],
        )
        sections = {section.heading: section for section in document.sections.all()}
        new += [_new_entry(fact, document, sections) for fact in source.facts]
    create_entries(new, author=author)


def _new_entry(
    fact: Fact, document: Document, sections: Mapping[str, Section]
) -> NewEntry:
    # For verified entries this value is ignored: their confidence is always 1.
    confidence = UNVERIFIED_CONFIDENCE if fact.confidence is None else fact.confidence
    is_verified = fact.confidence is None
    return NewEntry(
        knowledge_base=document.knowledge_base,
        audience=document.audience,
        document=document,
        section=sections.get(fact.heading),
        text=fact.text[:TEXT_LIMIT],
        question=fact.question[:QUESTION_LIMIT],
        origin=Entry.Origin.IMPORTED,
        verify=is_verified,
        state=Entry.State.DRAFT if is_verified else Entry.State.IN_REVIEW,
        confidence=confidence,
        reason="Evaluation data.",
    )


def ensure_audience() -> Audience:
    audience, is_new = Audience.objects.get_or_create(
        slug=_AUDIENCE, defaults={"name": "Evaluation"}
    )
    if is_new:
        audience.groups.set([Group.objects.get_or_create(name=USERNAME)[0]])
    return audience
