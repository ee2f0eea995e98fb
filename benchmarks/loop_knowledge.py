"""Test data: 100,000 entries written through the services, and work for curators.

Vectors are random, since the cost of a page does not depend on their meaning.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from django.contrib.auth.models import Group, User
from django.utils import timezone

from jobs.models import Job
from kb.embedding.services import PreparedVectors, active_model
from kb.entries.models import Entry
from kb.entries.services import create_entries
from kb.entries.values import NewEntry
from kb.models import (
    Audience,
    Comment,
    Conflict,
    Document,
    Flag,
    Import,
    KnowledgeBase,
    Proposal,
    Section,
    Tag,
)

_BATCH = 2_000
_PER_DOCUMENT = 100
_SECTIONS = 10
_SAID = (
    "Fact {n}: the fee of contract {n} is {fee} euros, charged on the day of issue.",
    "A card of contract {n} is replaced within {fee} days, abroad within two weeks.",
    "The limit of contract {n} rises by {fee} euros once the balance is paid in full.",
)


class Drawn(Mapping[str, np.ndarray]):
    """A mapping that holds a random unit vector for any text."""

    def __init__(self, dimensions: int) -> None:
        self._random = np.random.default_rng(7)
        self._dimensions = dimensions

    def __getitem__(self, text: str) -> np.ndarray:
        vector = self._random.standard_normal(self._dimensions, dtype=np.float32)
        vector /= np.linalg.norm(vector)
        return vector

    def __contains__(self, text: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def write_knowledge(count: int, author: User, tags: list[int]) -> list[KnowledgeBase]:
    """Write `count` entries in two knowledge bases.

    A tenth of the documents belong, with their entries, to an audience without members.
    """
    everyone = Audience.objects.create(slug="all", name="All", everyone=True)
    few = Audience.objects.create(slug="few", name="Few")
    few.groups.add(Group.objects.create(name="few"))
    bases = [
        KnowledgeBase.objects.create(slug=slug, name=slug.title(), language="en")
        for slug in ("cards", "loans")
    ]
    sections = _sections(count, bases, (everyone, few), author)
    model = active_model()
    vectors = PreparedVectors(model.fingerprint, Drawn(model.dimensions))
    product_lines = list(Tag.objects.filter(pk__in=tags))
    for start in range(0, count, _BATCH):
        create_entries(
            [
                _entry(n, sections[n * _SECTIONS // _PER_DOCUMENT], product_lines)
                for n in range(start, min(start + _BATCH, count))
            ],
            author=author,
            prepared=vectors,
        )
    _write_work(bases, everyone, author)
    return bases


def _sections(
    count: int,
    bases: list[KnowledgeBase],
    audiences: tuple[Audience, Audience],
    author: User,
) -> list[Section]:
    documents = Document.objects.bulk_create(
        Document(
            knowledge_base=bases[n % 5 == 0],
            title=f"Terms of contract group {n}",
            source=f"https://example.org/terms/{n}",
            audience=audiences[n % 10 == 0],
            created_by=author,
        )
        for n in range(-(-count // _PER_DOCUMENT))
    )
    return Section.objects.bulk_create(
        Section(document=document, heading=f"Section {position}", position=position)
        for document in documents
        for position in range(_SECTIONS)
    )


def _entry(n: int, section: Section, product_lines: list[Tag]) -> NewEntry:
    document = section.document
    return NewEntry(
        knowledge_base=document.knowledge_base,
        audience=document.audience,
        document=document,
        section=section,
        question=f"What holds for contract {n}?" if n % 7 == 0 else "",
        text=_SAID[n % len(_SAID)].format(n=n, fee=n % 97),
        product_line=product_lines[n % len(product_lines)],
        verify=n % 50 != 0,
    )


def _write_work(bases: list[KnowledgeBase], audience: Audience, author: User) -> None:
    """Write a curator's work: about one item of each kind for every ten entries.

    Flags and imports are ten times fewer.
    """
    entries = list(Entry.objects.order_by("pk").filter(audience=audience)[::10])
    now = timezone.now()
    Flag.objects.bulk_create(
        Flag(entry=entry, user=author, note="This is out of date.", created_at=now)
        for entry in entries[::10]
    )
    Comment.objects.bulk_create(
        Comment(entry=entry, author=author, text="Since May this holds abroad too.")
        for entry in entries
    )
    Conflict.objects.bulk_create(
        Conflict(
            first=first, second=second, first_revision=1, second_revision=1,
            texts_sha256="0" * 64, kind=list(Conflict.Kind)[n % 2], score=0.9,
            distance=0.3, model="rules",
        )
        for n, (first, second) in enumerate(pairwise(entries))
        if first.knowledge_base_id == second.knowledge_base_id
    )  # fmt: skip
    Proposal.objects.bulk_create(
        Proposal(
            knowledge_base_id=entry.knowledge_base_id, entry=entry,
            seed_question="What is charged?", question=f"What is charged for {n}?",
            question_sha256=hashlib.sha256(str(n).encode()).hexdigest(),
            answer=f"{n % 97} euros", sentence=entry.text, stated=0.9, agreement=1,
            confidence=0.8, model_name="bundled", model_fingerprint="0" * 64,
            prompt_version="1", random_seed=1, nearest=[],
        )
        for n, entry in enumerate(entries)
    )  # fmt: skip
    Job.objects.bulk_create(
        Job(kind="kb.embed", state=Job.State.SUCCEEDED, owner=author, finished_at=now)
        for _ in entries
    )
    Import.objects.bulk_create(
        Import(
            knowledge_base=bases[n % 5 == 0], audience=audience, file=f"{n}.csv",
            file_name=f"prices {n}.csv", file_sha256="0" * 64, format="csv",
            source=f"prices-{n}", document_title="", created_by=author,
            state=Import.State.APPLIED, applied_at=now,
        )
        for n, _ in enumerate(entries[::10])
    )  # fmt: skip
