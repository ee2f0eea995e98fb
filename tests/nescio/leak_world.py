"""A random world of knowledge, and a plain reference of who may see what in it.

Every revision says a mark of its own. The reference is a few dictionaries that repeat what
was done, and know nothing of row-level security, query sets and pages.
"""

import random
import re
from dataclasses import dataclass, field
from typing import Unpack

from django.contrib.auth.models import Group, User

from accounts.roles import Role
from kb.audiences.services import edit_audience
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import restore_entry, retire_entry
from kb.entries.values import EntryChanges
from kb.models import Audience, Entry, Revision
from tests.factories import (
    make_audience,
    make_curator,
    make_knowledge_base,
    make_user,
    set_role,
)

MARK = re.compile(r"qx\d{5}r\d{4}")
GROUPS = ("north", "south", "east", "west")
_ROLES = (
    Role.AGENT, Role.AGENT, Role.SME, Role.SME, Role.CURATOR, Role.CURATOR, Role.CURATOR,
    Role.ADMIN,
)  # fmt: skip
_MAX_ENTRIES = 30
_MAX_REVISIONS = 12


@dataclass(frozen=True, slots=True)
class Said:
    """A revision: its mark and its audience."""

    mark: str
    audience: str


@dataclass
class Fact:
    """An entry as the reference knows it; the last of `said` is what it says now."""

    key: int
    question: str
    said: list[Said]
    is_retired: bool = False

    @property
    def audience(self) -> str:
        return self.said[-1].audience


@dataclass
class Person:
    user: User
    role: Role | None  # None: a superuser
    groups: set[str] = field(default_factory=set)

    def has(self, role: Role) -> bool:
        return self.role is None or list(Role).index(self.role) >= list(Role).index(
            role
        )


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.curator = make_curator()
        self.facts: dict[int, Fact] = {}
        self.audiences: dict[str, set[str] | None] = {"everyone": None}  # None: of all
        make_audience("everyone")
        for name in ("alpha", "beta", "gamma", "delta"):
            groups = self._some_groups()
            make_audience(name, groups=sorted(groups))
            self.audiences[name] = groups
        self.people = [self._person(role) for role in _ROLES]
        root = User.objects.create_superuser("root")
        self.people.append(Person(root, None))
        for _ in range(12):
            self.write()

    # The reference.

    def belongs(self, person: Person, audience: str) -> bool:
        groups = self.audiences[audience]
        return person.role is None or groups is None or bool(groups & person.groups)

    def sees(self, person: Person, fact: Fact) -> bool:
        return self.belongs(person, fact.audience)

    def reads(self, person: Person, fact: Fact) -> set[str]:
        """Return the marks of the revisions that a person may read."""
        if not self.sees(person, fact):
            return set()
        return {said.mark for said in fact.said if self.belongs(person, said.audience)}

    def lists(self, person: Person) -> dict[int, Fact]:
        """Return the entries that REST names to a person."""
        return {
            key: fact
            for key, fact in self.facts.items()
            if self.sees(person, fact)
            and (person.has(Role.CURATOR) or not fact.is_retired)
        }

    def may_restore(self, fact: Fact, number: int) -> bool:
        """Tell whether everybody who sees the entry now belonged to the revision's."""
        then, now = (
            self.audiences[fact.said[number - 1].audience],
            self.audiences[fact.audience],
        )
        if fact.said[number - 1].audience == fact.audience or then is None:
            return True
        return now is not None and now <= then

    def belongs_to(self, person: Person) -> set[str]:
        return {name for name in self.audiences if self.belongs(person, name)}

    def all_readable(self, person: Person) -> set[str]:
        return set().union(*(self.reads(person, f) for f in self.facts.values()))

    # What changes it.

    def change(self) -> None:
        """Do one random thing, through the services and to the reference."""
        doing = self.random.choices(
            (
                self.write, self.say, self.move, self.retire, self.regroup, self.reopen,
                self.promote, self.found,
            ),
            (3, 4, 5, 2, 4, 2, 2, 1),
        )[0]  # fmt: skip
        doing()

    def write(self) -> None:
        if len(self.facts) >= _MAX_ENTRIES:
            self.move()
            return
        audience = self._some_audience()
        topic = f"account {self.random.randrange(10**6)}"
        question = f"What is the limit of {topic}?"
        mark = f"qx{len(self.facts):05d}r0001"
        entry = create_entry(
            author=self.curator,
            question=question,
            text=f"The limit is {mark} euros.",
            audience=Audience.objects.get(slug=audience),
            knowledge_base=make_knowledge_base(),
            verify=True,
        )
        self.facts[entry.pk] = Fact(entry.pk, question, [Said(mark, audience)])

    def say(self) -> None:
        fact = self._some_fact()
        mark = f"{fact.said[-1].mark[:8]}{len(fact.said) + 1:04d}"
        if self._changed(fact, text=f"The limit is {mark} euros."):
            fact.said.append(Said(mark, fact.audience))

    def move(self) -> None:
        fact, audience = self._some_fact(), self._some_audience()
        if audience != fact.audience and self._changed(
            fact, audience=Audience.objects.get(slug=audience)
        ):
            fact.said.append(Said(fact.said[-1].mark, audience))

    def retire(self) -> None:
        fact = self._some_fact()
        act = restore_entry if fact.is_retired else retire_entry
        act(entry_id=fact.key, by=self.curator)
        fact.is_retired = not fact.is_retired
        fact.said.append(fact.said[-1])

    def regroup(self) -> None:
        """Give a person other groups."""
        person = self.random.choice(self.people[:-1])
        person.groups = self._some_groups(least=0)
        person.user.groups.set(
            Group.objects.filter(name__in=[*person.groups, str(person.role)])
        )

    def promote(self) -> None:
        """Give a person another role, higher or lower."""
        person = self.random.choice(self.people[:-1])
        person.role = self.random.choice(list(Role))
        set_role(person.user, role=person.role)

    def found(self) -> None:
        """Make one more audience."""
        name = f"more{len(self.audiences)}"
        groups = self._some_groups()
        make_audience(name, groups=sorted(groups))
        self.audiences[name] = groups

    def reopen(self) -> None:
        """Give an audience other groups, or everyone."""
        name = self.random.choice(
            [name for name in self.audiences if name != "everyone"]
        )
        key = Audience.objects.get(slug=name).pk
        is_open = self.random.random() < 0.15
        groups = self._some_groups()
        edit_audience(audience_id=key, everyone=is_open, groups=sorted(groups))
        self.audiences[name] = None if is_open else groups

    def restored(self, fact: Fact, number: int) -> None:
        """Note that a revision was restored, if it changed anything."""
        mark = fact.said[number - 1].mark
        if mark != fact.said[-1].mark:
            fact.said.append(Said(mark, fact.audience))

    def check(self) -> None:
        """Fail where the reference has lost track of what is stored."""
        stored = dict.fromkeys(self.facts, 0) | {
            key: len(list(Revision.objects.filter(entry=key))) for key in self.facts
        }
        assert stored == {key: len(fact.said) for key, fact in self.facts.items()}
        assert Entry.objects.count() == len(self.facts)

    def _changed(self, fact: Fact, **changes: Unpack[EntryChanges]) -> bool:
        if fact.is_retired or len(fact.said) >= _MAX_REVISIONS:
            return False
        edit_entry(entry_id=fact.key, author=self.curator, may_verify=True, **changes)
        return True

    def _person(self, role: Role) -> Person:
        groups = self._some_groups(least=0)
        user = make_user(role=None, groups=sorted(groups))
        set_role(user, role=role)
        return Person(user, role, groups)

    def _some_groups(self, least: int = 1) -> set[str]:
        for name in GROUPS:
            Group.objects.get_or_create(name=name)
        return set(self.random.sample(GROUPS, self.random.randint(least, 2)))

    def _some_audience(self) -> str:
        return self.random.choice(list(self.audiences))

    def _some_fact(self) -> Fact:
        return self.random.choice(list(self.facts.values()))
