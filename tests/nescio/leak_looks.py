"""Looks at random at whatever shows knowledge, each held against a plain reference."""

import io
import json
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.contrib import admin
from django.test import Client
from django.urls import reverse

from accounts.acting import acting_for
from accounts.roles import Role
from accounts.throttles import cache
from integrations.widget.models import Widget
from integrations.widget.tokens import issue_token
from jobs.models import Job
from jobs.run import run_job
from kb.archive.exports import KIND, export_in_background
from kb.archive.writing import Contents, write_archive
from qa.models import Answer, AnswerEvidence
from tests.factories import make_knowledge_base
from tests.nescio.leak_world import MARK, Fact, Person, Said, World

LIVE = {"HX-Request": "true"}


@dataclass(frozen=True, slots=True)
class Export:
    """An export: whose, and what its owner belonged to and read when it was made."""

    job: Job
    owner: Person
    is_complete: bool
    audiences: set[str]
    marks: set[str]


class Looks:
    """One look each, at random; a wrong one is noted as (surface, what was wrong)."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.wrong: list[tuple[str, object]] = []
        self.cases: Counter[str] = Counter()
        self.shown = 0
        self.exports: list[Export] = []
        self.clients = {}
        for person in world.people:
            self.clients[person.user.pk] = Client()
            self.clients[person.user.pk].force_login(person.user)
        self.surfaces: dict[Callable[[Person], None], int] = {
            self.entries: 8, self.entry: 10, self.revisions: 12, self.table: 4,
            self.archive: 4, self.export: 3, self.exported: 5, self.job: 3,
            self.admin_list: 8, self.admin_entry: 8, self.history: 4,
            self.comparison: 8, self.lookup: 12, self.words: 6, self.search: 6,
            self.ask: 6, self.ask_by_openai: 4, self.ask_in_widget: 4, self.ask_in_events: 3, self.ask_on_page: 4, self.answer: 12,
            self.answer_pages: 8, self.answers: 4, self.restoration: 5,
            self.entry_page: 6, self.playground: 6,
        }  # fmt: skip

    def look(self) -> None:
        surface = self.random.choices(
            list(self.surfaces), list(self.surfaces.values())
        )[0]
        self.surface = surface.__name__
        self.cases[self.surface] += 1
        surface(self.random.choice(self.world.people))

    def hold(self, shown: str, *, least: set[str], most: set[str]) -> None:
        """Compare what was shown with what had to be shown, and what was allowed to be."""
        marks = set(MARK.findall(shown))
        self.shown += len(marks)
        if marks - most:
            self.wrong.append((self.surface, ("leak", sorted(marks - most))))
        if least - marks:
            self.wrong.append((self.surface, ("missing", sorted(least - marks))))

    def expect(self, status: int, *allowed: int) -> bool:
        if status not in allowed:
            self.wrong.append((self.surface, ("status", status, allowed)))
        return status == 200

    def get(self, person: Person, address: str) -> tuple[int, str]:
        cache.clear()  # no rate counts here
        response = self.clients[person.user.pk].get(address)
        shown = response.getvalue()
        is_archive = response["Content-Type"] == "application/zip"
        return response.status_code, unzipped(shown) if is_archive else shown.decode()

    def post(self, person: Person, address: str, body: object, **headers: str):
        cache.clear()
        return self.clients[person.user.pk].post(
            address, json.dumps(body), "application/json", headers=headers
        )

    def a_fact(self) -> Fact:
        return self.random.choice(list(self.world.facts.values()))

    # Knowledge over REST.

    def entries(self, person: Person) -> None:
        status, shown = self.get(person, "/api/v1/entries?page_size=200")
        if self.expect(status, 200):
            now = {fact.said[-1].mark for fact in self.world.lists(person).values()}
            self.hold(shown, least=now, most=now)

    def entry(self, person: Person) -> None:
        fact = self.a_fact()
        is_there = fact.key in self.world.lists(person)
        status, shown = self.get(person, f"/api/v1/entries/{fact.key}")
        self.expect(status, 200 if is_there else 404)
        now = {fact.said[-1].mark} if is_there else set()
        self.hold(shown, least=now, most=now)

    def entry_page(self, person: Person) -> None:
        fact = self.a_fact()
        is_there = fact.key in self.world.lists(person)
        status, shown = self.get(person, f"/knowledge/entries/{fact.key}")
        self.expect(status, 200 if is_there else 404)
        marks = self.world.reads(person, fact) if is_there else set()
        self.hold(shown, least=marks & {fact.said[-1].mark}, most=marks)

    def revisions(self, person: Person) -> None:
        fact = self.a_fact()
        is_there = fact.key in self.world.lists(person)
        address = f"/api/v1/entries/{fact.key}/revisions?page_size=200"
        status, shown = self.get(person, address)
        self.expect(status, 200 if is_there else 404)
        marks = self.world.reads(person, fact) if is_there else set()
        self.hold(shown, least=marks, most=marks)

    def table(self, person: Person) -> None:
        status, shown = self.get(person, "/api/v1/entries.csv")
        may = person.has(Role.CURATOR)
        self.expect(status, 200 if may else 403)
        facts = self.world.lists(person).values() if may else ()
        now = {fact.said[-1].mark for fact in facts}
        self.hold(shown, least=now, most=now)

    def archive(self, person: Person) -> None:
        with tempfile.TemporaryDirectory() as directory, acting_for(person.user):
            path = Path(directory) / "knowledge.zip"
            write_archive(path, Contents(reader=person.user))
            shown = unzipped(path.read_bytes())
        curates = person.has(Role.CURATOR)
        marks = self.world.all_readable(person) if curates else set()
        self.hold(shown, least=marks, most=marks)

    def export(self, person: Person) -> None:
        is_complete = self.random.random() < 0.3
        may = person.has(Role.ADMIN if is_complete else Role.CURATOR)
        response = self.post(person, "/api/v1/exports", {"complete": is_complete})
        self.expect(response.status_code, 202 if may else 403)
        if may:
            job = Job.objects.get(pk=response.json()["id"])
            run_job(job.pk, {KIND: export_in_background})
            facts, readable = self.world.facts.values(), self.world.all_readable(person)
            marks = {said.mark for fact in facts for said in fact.said}
            belongs = self.world.belongs_to(person)
            self.exports.append(
                Export(job, person, is_complete, *(
                    (set(), marks) if is_complete else (belongs, readable)
                ))
            )  # fmt: skip

    def exported(self, person: Person) -> None:
        """Fetch an archive made earlier, one's own more often than a colleague's."""
        if not self.exports:
            return
        made = self.random.choice(self.exports)
        if self.random.random() < 0.7:
            person = made.owner
        status, shown = self.get(person, f"/api/v1/exports/{made.job.pk}/file")
        if not person.has(Role.CURATOR):
            allowed = 403
        elif person is not made.owner:
            allowed = 404
        elif made.audiences - self.world.belongs_to(person) or (
            made.is_complete and not person.has(Role.ADMIN)
        ):
            allowed = 403
        else:
            allowed = 200
        self.expect(status, allowed)
        marks = made.marks if allowed == 200 else set()
        self.hold(shown, least=marks, most=marks)

    def job(self, person: Person) -> None:
        """Follow the job of an export, or look at it."""
        if not self.exports:
            return
        made = self.random.choice(self.exports)
        what = self.random.choice(("", "/events"))
        status, shown = self.get(person, f"/api/v1/jobs/{made.job.pk}{what}")
        may = person is made.owner or person.has(Role.ADMIN)
        self.expect(status, 200 if may else 404)
        self.hold(shown, least=set(), most=set())

    def restoration(self, person: Person) -> None:
        fact = self.a_fact()
        number = self.random.randint(1, len(fact.said))
        was = fact.said[number - 1]
        reads = self.world.sees(person, fact) and self.world.belongs(
            person, was.audience
        )
        address = f"/api/v1/entries/{fact.key}/revisions/{number}/restore"
        response = self.post(person, address, {})
        if not person.has(Role.CURATOR):
            allowed: tuple[int, ...] = (403,)
        elif not reads:
            allowed = (404, 409)  # 409 where it is evidence of one's own answer
        elif fact.is_retired or not self.world.may_restore(fact, number):
            allowed = (409,)
        else:
            allowed = (200,)
            self.world.restored(fact, number)
        self.expect(response.status_code, *allowed)
        now = {fact.said[-1].mark} if allowed == (200,) else set()
        self.hold(response.content.decode(), least=now, most=now)

    # The admin.

    def admin_list(self, person: Person) -> None:
        status, shown = self.get(person, "/admin/kb/entry/")
        if self.expect(status, 200 if person.has(Role.SME) else 302):
            facts = self.world.facts.values()
            now = {f.said[-1].mark for f in facts if self.world.sees(person, f)}
            self.hold(shown, least=now, most=now)

    def admin_entry(self, person: Person) -> None:
        fact = self.a_fact()
        status, shown = self.get(person, f"/admin/kb/entry/{fact.key}/change/")
        self.hold_page(person, fact, status, shown, all_revisions=True)

    def history(self, person: Person) -> None:
        fact = self.a_fact()
        status, shown = self.get(person, f"/admin/kb/entry/{fact.key}/history/")
        self.hold_page(person, fact, status, shown, all_revisions=False)

    def hold_page(
        self,
        person: Person,
        fact: Fact,
        status: int,
        shown: str,
        *,
        all_revisions: bool,
    ) -> None:
        is_there = person.has(Role.SME) and self.world.sees(person, fact)
        self.expect(status, *([200] if is_there else [302, 404]))
        marks = self.world.reads(person, fact) if is_there else set()
        least = marks if all_revisions and is_there else set()
        self.hold(shown, least=least, most=marks)

    def comparison(self, person: Person) -> None:
        fact = self.a_fact()
        two = [self.random.randint(1, len(fact.said)) for _ in range(2)]
        address = reverse("admin:kb_entry_compare", args=[fact.key])
        address += f"?old={two[0]}&new={two[1]}"
        status, shown = self.get(person, address)
        chosen = [fact.said[number - 1] for number in two]
        is_there = person.has(Role.SME) and self.world.sees(person, fact)
        is_there &= all(self.world.belongs(person, said.audience) for said in chosen)
        self.expect(status, *([200] if is_there else [302, 404]))
        marks = {said.mark for said in chosen} if is_there else set()
        heading = {fact.said[-1].mark} if is_there else set()
        self.hold(shown, least=marks, most=marks | heading)

    def lookup(self, person: Person) -> None:
        """Narrow a list by the words of something hidden, as far as an address lets."""
        model = self.random.choice(list(admin.site._registry))
        names = [each.name for each in model._meta.concrete_fields]
        name = self.random.choice(names)
        how = self.random.choice(
            ["regex", "startswith", "contains", "gt", "in", "iexact"]
        )
        mark = self.random.choice(self.a_fact().said).mark
        meta = model._meta
        address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        status, shown = self.get(person, f"{address}?{name}__{how}={mark[:-3]}")
        self.expect(status, *([400, 403] if person.has(Role.SME) else [302]))
        self.hold(shown, least=set(), most=set())

    def words(self, person: Person) -> None:
        """Search lists by a word of some revision, perhaps an old or a hidden one."""
        fact = self.a_fact()
        mark = self.random.choice(fact.said).mark
        says_it = fact.said[-1].mark == mark
        status, shown = self.get(person, f"/api/v1/entries?q={mark}")
        if self.expect(status, 200):
            is_there = says_it and fact.key in self.world.lists(person)
            marks = {mark} if is_there else set()
            self.hold(shown, least=marks, most=marks)
        status, shown = self.get(person, f"/admin/kb/entry/?q={mark}")
        if self.expect(status, 200 if person.has(Role.SME) else 302):
            # The page repeats what it was asked for; a row links to its entry. A word that
            # no entry says finds those near in meaning.
            may_be_there = self.world.sees(person, fact)
            is_there = f"/admin/kb/entry/{fact.key}/change/" in shown
            if is_there != may_be_there and (is_there or says_it):
                self.wrong.append((self.surface, ("row", fact.key, is_there)))
            facts = self.world.facts.values()
            seen = {
                each.said[-1].mark for each in facts if self.world.sees(person, each)
            }
            self.hold(
                shown,
                least=set(),
                most={mark} | (set() if is_there and says_it else seen),
            )

    # Questions.

    def search(self, person: Person) -> None:
        fact = self.a_fact()
        response = self.post(person, "/api/v1/search", {"question": fact.question})
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.content.decode())

    def ask(self, person: Person) -> None:
        fact = self.a_fact()
        response = self.post(person, "/api/v1/ask", {"question": fact.question})
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.content.decode())

    def ask_by_openai(self, person: Person) -> None:
        fact = self.a_fact()
        turns = [{"role": "user", "content": fact.question}]
        body = {"model": "cards", "messages": turns}
        response = self.post(person, "/v1/chat/completions", body)
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.content.decode())

    def ask_in_widget(self, person: Person) -> None:
        """Ask on a page whose widget's account is this person's."""
        fact = self.a_fact()
        site = "https://intranet.example"
        fields = {
            "account": person.user,
            "origins": [site],
            "knowledge_base": make_knowledge_base(),
        }
        widget, _ = Widget.objects.update_or_create(name="help", defaults=fields)
        if person.role is None:
            response = self.post(person, "/widget/help/token", {}, Origin=site)
            self.expect(response.status_code, 403)
            return
        token = issue_token(widget, site, "")
        response = self.post(
            person,
            "/widget/help/ask",
            {"question": fact.question},
            Origin=site,
            Authorization=f"Bearer {token}",
        )
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.content.decode())

    def ask_in_events(self, person: Person) -> None:
        fact = self.a_fact()
        response = self.post(
            person,
            "/api/v1/ask",
            {"question": fact.question},
            Accept="text/event-stream",
        )
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.getvalue().decode())

    def ask_on_page(self, person: Person) -> None:
        cache.clear()
        fact, client = self.a_fact(), self.clients[person.user.pk]
        client.post("/", {"question": fact.question}, headers=LIVE)
        asked = Answer.objects.filter(asker=person.user).latest("created_at")
        colleague = self.random.choice(self.world.people)
        if colleague is not person:
            stream = reverse("answer-stream", args=[asked.pk])
            assert self.clients[colleague.user.pk].post(stream).status_code == 404
        response = client.post(reverse("answer-stream", args=[asked.pk]))
        if self.expect(response.status_code, 200):
            self.hold_answer(person, fact, response.getvalue().decode())

    def playground(self, person: Person) -> None:
        """Try a question as oneself or as a colleague, who may see more."""
        cache.clear()
        fact, other = self.a_fact(), self.random.choice(self.world.people)
        sent = {"question": fact.question, "knowledge_base": "cards", "asker": other.user.username, "gates_only": "on"}  # fmt: skip
        response = self.clients[person.user.pk].post("/playground", sent, headers=LIVE)
        if not person.has(Role.SME):
            self.expect(response.status_code, 403)
            return
        sees_no_more = self.world.belongs_to(other) <= self.world.belongs_to(person)
        is_above = other.role is None and person.role is not None
        may = other is person or (sees_no_more and not is_above)
        if self.expect(response.status_code, 200 if may else 400):
            self.hold_answer(other, fact, response.content.decode())

    def hold_answer(self, person: Person, fact: Fact, shown: str) -> None:
        """Hold an answer against what may be evidence; its own entry's is word for word."""
        served = [f for f in self.world.lists(person).values() if not f.is_retired]
        now = {each.said[-1].mark for each in served}
        own = {fact.said[-1].mark} if fact in served else set()
        self.hold(shown, least=own, most=now)

    def used(self, piece: AnswerEvidence) -> tuple[Fact, Said]:
        assert piece.entry_id is not None
        assert piece.revision is not None
        fact = self.world.facts[piece.entry_id]
        return fact, fact.said[piece.revision.number - 1]

    def an_answer(self, person: Person) -> tuple[Answer | None, set[str]]:
        """Return a past answer and the marks of it that a person may read now."""
        keys = Answer.objects.order_by("-created_at").values_list("pk", flat=True)[:50]
        if not keys:
            return None, set()
        answer = Answer.objects.get(pk=self.random.choice(list(keys)))
        is_own = answer.asker_id == person.user.pk
        marks = set()
        for piece in AnswerEvidence.objects.filter(answer=answer):
            fact, said = self.used(piece)
            if is_own or (
                self.world.sees(person, fact)
                and self.world.belongs(person, said.audience)
            ):
                marks.add(said.mark)
        may_open = is_own or person.has(Role.SME)
        return (answer, marks) if may_open else (answer, set())

    def answer(self, person: Person) -> None:
        answer, marks = self.an_answer(person)
        if answer is not None:
            status, shown = self.get(person, f"/api/v1/answers/{answer.pk}")
            may_open = answer.asker_id == person.user.pk or person.has(Role.SME)
            self.expect(status, 200 if may_open else 404)
            self.hold(shown, least=marks, most=marks)

    def answer_pages(self, person: Person) -> None:
        answer, marks = self.an_answer(person)
        if answer is not None:
            places = (f"/answers/{answer.pk}", f"/admin/qa/answer/{answer.pk}/change/")
            status, shown = self.get(person, self.random.choice(places))
            self.expect(status, 200, 302, 404)
            self.hold(shown, least=set(), most=marks)

    def answers(self, person: Person) -> None:
        address = self.random.choice(
            ("/answers", "/api/v1/answers", "/admin/qa/answer/")
        )
        status, shown = self.get(person, address)
        self.expect(status, 200, 302)
        own = AnswerEvidence.objects.filter(answer__asker=person.user)
        given = {self.used(piece)[1].mark for piece in own.select_related("revision")}
        self.hold(shown, least=set(), most=given | self.world.all_readable(person))


def unzipped(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as held:
        return "".join(held.read(name).decode() for name in held.namelist())
