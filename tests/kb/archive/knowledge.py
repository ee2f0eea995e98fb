"""Knowledge to put into archives: random by seed, of every kind of row."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.contrib.auth.models import Group, User
from django.db import connection

from accounts.acting import as_owner
from accounts.roles import Role
from kb.archive.writing import Contents, write_archive
from kb.documents.services import SectionNode, create_document, edit_document
from kb.entries.services import create_entries, edit_entry
from kb.entries.states import mark_for_review, retire_entry, verify_entry
from kb.entries.values import NewEntry
from kb.entries.wordings import Wording
from kb.models import Audience, Conflict, Document, Entry, KnowledgeBase, Proposal, Tag
from kb.synonyms.models import Synonym
from tests.factories import (
    make_audience,
    make_curator,
    make_knowledge_base,
    make_tag,
    make_user,
)

WORDS = [
    "a card", "costs", "12 euros", "=1+1", "Grüße", "日本語", "\U0001f600", "it's",
    'he said "no"', "line\nbreak", "tab\there", "\\u0041", "%s", "\u2028",
]  # fmt: skip


def commit() -> None:
    """Let what waits for the end of the transaction happen now."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def said(chance: random.Random) -> str:
    return " ".join(["It says", *chance.choices(WORDS, k=chance.randint(1, 6))])


def nodes(chance: random.Random, depth: int = 0) -> tuple[SectionNode, ...]:
    if depth == 3:
        return ()
    return tuple(
        SectionNode(f"Heading {chance.randint(0, 99)}", nodes(chance, depth + 1))
        for _ in range(chance.randint(0, 2))
    )


def fill(seed: int, slug: str = "cards") -> KnowledgeBase:
    """Make a knowledge base with documents, sections, entries and their history."""
    chance = random.Random(seed)
    knowledge_base = make_knowledge_base(
        slug, language=chance.choice(["en", "de", "xx"])
    )
    people = [make_curator(), User.objects.filter(username="olga").first()]
    people[1] = people[1] or make_user(Role.SME, username="olga")
    audiences = [make_audience(), make_audience("finance", groups=["finance", "board"])]
    documents = [
        create_document(
            knowledge_base=knowledge_base,
            title=f"Document {number}",
            audience=chance.choice(audiences),
            author=chance.choice([*people, None]),
            source=chance.choice(["", "https://example.org/a?b=1"]),
            sections=nodes(chance),
        )
        for number in range(chance.randint(0, 3))
    ]
    entries = create_entries(
        [
            _new(chance, knowledge_base, audiences, documents, people)
            for _ in range(chance.randint(0, 6))
        ],
        author=people[0],
    )
    for entry in entries:
        _change(chance, entry, people, audiences)
    for document in documents:
        if chance.random() < 0.3:
            edit_document(document_id=document.pk, author=people[0], sections=[])
    if len(entries) > 1:
        Conflict.objects.create(
            first=entries[0],
            second=entries[1],
            first_revision=1,
            second_revision=1,
            texts_sha256="0" * 64,
            kind=chance.choice(Conflict.Kind.values),
            score=chance.random(),
            distance=0.5,
            reasons=[{"signal": "numbers", "places": [[0, 2]], "why": said(chance)}],
            model="rules 1",
            state=chance.choice(Conflict.State.values),
            kept=chance.choice([entries[0], None]),
            resolved_by=chance.choice([*people, None]),
            reason="Both hold.",
        )
        _propose(chance, entries, people)
        for entry in chance.sample(entries, 2):
            who = chance.choice([*people, None])
            Wording.objects.create(entry=entry, text=said(chance), added_by=who)
    Synonym.objects.create(
        knowledge_base=knowledge_base, word="biro", means="pen", added_by=people[0]
    )
    if entries:  # a trace of somebody who writes past the services
        Entry.objects.filter(pk=entries[0].pk).update(text=f"{said(chance)} by hand")
    commit()
    return knowledge_base


def _propose(chance, entries, people) -> None:
    state = chance.choice(Proposal.State.values)
    is_open = state == Proposal.State.PROPOSED
    Proposal.objects.create(
        knowledge_base=entries[0].knowledge_base,
        entry=entries[1],
        seed_question="What does a card cost?",
        question=said(chance),
        question_sha256="1" * 64,
        answer=said(chance),
        sentence=said(chance),
        stated=chance.random(),
        agreement=chance.random(),
        likelihood=chance.choice([None, 0.25]),
        confidence=0.5,
        model_name="bundled",
        model_fingerprint="2" * 64,
        prompt_version="1",
        random_seed=chance.randint(-(2**63), 2**63 - 1),
        nearest=[[entries[0].pk, 0.5], [10**9, 0.75]],
        state=state,
        decided_by=None if is_open else chance.choice(people),
        decided_at=None if is_open else datetime(2026, 1, 1, tzinfo=UTC),
        reason="" if is_open else "Read.",
    )


def _new(chance, knowledge_base, audiences, documents, people) -> NewEntry:
    document = chance.choice([*documents, None])
    sections = [None, *document.sections.all()] if document else [None]
    return NewEntry(
        knowledge_base=knowledge_base,
        audience=chance.choice(audiences),
        document=document,
        section=chance.choice(sections),
        text=said(chance),
        question=chance.choice(["", "What does it cost?"]),
        origin=chance.choice(Entry.Origin.values),
        confidence=chance.choice(
            [0.1, 1 / 3, 0.9999999999999999, 0.0010000000000000002]
        ),
        verify=chance.random() < 0.5,
        valid_until=chance.choice(
            [None, datetime(2031, 1, 1, tzinfo=UTC) + timedelta(microseconds=1)]
        ),
        owner=chance.choice([*people, None]),
        product_line=chance.choice([make_tag("cards", people[1]), None]),
        line_of_business=chance.choice([_business("retail"), _business("trade")]),
        reason=chance.choice(["", "Price list."]),
    )


def _business(slug: str) -> Tag:
    return make_tag(slug, facet=Tag.Facet.LINE_OF_BUSINESS)


def _change(chance, entry, people, audiences) -> None:
    for _ in range(chance.randint(0, 3)):
        by = chance.choice(people)
        edit_entry(
            entry_id=entry.pk,
            author=by,
            may_verify=chance.random() < 0.5,
            text=said(chance),
            audience=chance.choice(audiences),
        )
        if chance.random() < 0.5:
            verify_entry(entry_id=entry.pk, by=by)
        else:
            mark_for_review(entry_id=entry.pk, by=by)
    if chance.random() < 0.2:
        retire_entry(entry_id=entry.pk, by=people[0])


def wipe(*, with_people: bool = True) -> None:
    """Empty the installation of knowledge and, with it, of those who wrote it."""
    commit()
    with as_owner("tests"), connection.cursor() as cursor:
        cursor.execute("TRUNCATE kb_knowledgebase, kb_audience, kb_tag CASCADE")
    if with_people:
        User.objects.all().delete()
        Group.objects.all().delete()


def exported(path: Path, **contents) -> bytes:
    """Write an archive and return its bytes."""
    commit()
    write_archive(path, Contents(**contents))
    return path.read_bytes()


def counts() -> tuple[int, ...]:
    """Return how many rows of each kind there are."""
    models = (KnowledgeBase, Audience, Tag, Document, Entry, User, Group)
    return tuple(model.objects.count() for model in models)
