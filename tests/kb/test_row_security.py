"""What the database itself shows to whom: every filter of ours is forgotten here."""

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.utils import timezone

from accounts.acting import acting_for, as_owner, unrestricted
from accounts.roles import Role
from kb.embedding.services import embed_question
from kb.entries.services import create_entry
from kb.models import Audience, Document, Entry, EntryWords, Revision, Section
from kb.search import search
from kb.types import Scope
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)

SECURED = (Entry, Revision, Document, Section, EntryWords)


@pytest.fixture
def member(db):
    return make_user(Role.CURATOR, groups=["fraud"])


@pytest.fixture
def stranger(db):
    return make_user(Role.ADMIN)


@pytest.fixture
def secret(db, member):
    """Return an entry that only members of "fraud" may see."""
    audience = make_audience("fraud", groups=["fraud"])
    document = make_document("Fraud handbook", audience=audience)
    section = Section.objects.create(document=document, heading="Limits", position=0)
    return make_entry("The secret limit is 900 euros.", section=section)


def nobody_says_anything(call):
    """Run in a context in which no reader is set."""
    return contextvars.Context().run(call)


def test_a_forgotten_filter_finds_nothing_of_other_audiences(secret, stranger):
    with acting_for(stranger):
        found = [list(model.objects.all()) for model in SECURED]

    assert found == [[]] * len(SECURED)


def test_members_superusers_and_work_that_is_nobodys_find_it(secret, member):
    superuser = make_user(None)
    superuser.is_superuser = True
    superuser.save()

    for reading in (
        acting_for(member),
        acting_for(superuser),
        unrestricted("tests"),
        as_owner("tests"),
    ):
        with reading:
            assert [model.objects.count() for model in SECURED] == [1] * len(SECURED)


@pytest.mark.parametrize("model", SECURED)
def test_saying_nothing_is_an_error_and_no_wrong_nothing(secret, model):
    with pytest.raises(ProgrammingError, match="No reader is set"):
        nobody_says_anything(lambda: list(model.objects.all()))


@pytest.mark.parametrize(
    ("groups", "is_superuser", "is_active"),
    [
        ([], False, True),
        (["fraud"], False, True),
        (["fraud", "tax"], False, True),
        (["tax"], False, False),
        ([], True, True),
        (["fraud"], True, False),
    ],
)
def test_the_database_and_the_code_agree_on_who_is_in_which_audience(
    db, groups, is_superuser, is_active
):
    for slug in ("fraud", "tax"):
        make_audience(slug, groups=[slug])
    make_audience("everyone")
    user = make_user(Role.AGENT, groups=groups)
    user.is_superuser, user.is_active = is_superuser, is_active
    user.save()

    with acting_for(user), connection.cursor() as cursor:
        cursor.execute("SELECT nescio_audiences()")
        of_database = set(cursor.fetchone()[0])

    assert of_database == set(
        Audience.objects.visible_to(user).values_list("pk", flat=True)
    )


def test_leaving_a_group_counts_from_the_next_statement_on(secret, member):
    with acting_for(member):
        assert Entry.objects.exists()
        member.groups.clear()
        assert not Entry.objects.exists()


def test_a_search_that_asks_for_every_audience_finds_only_the_readers(secret, stranger):
    scope = Scope(
        knowledge_base_id=make_knowledge_base().pk,
        audience_ids=tuple(Audience.objects.values_list("pk", flat=True)),
        unverified_floor=0.0,
        at=timezone.now(),
    )
    vector = embed_question("What is the secret limit?")

    with acting_for(stranger):
        found = search(vector, vector.text, scope=scope, top_k=4)

    assert (found.visible, found.hits) == (0, ())
    assert search(vector, vector.text, scope=scope, top_k=4).visible == 1


def test_nobody_writes_what_they_may_not_see(secret, stranger):
    with acting_for(stranger):
        changed = Entry.objects.filter(pk=secret.pk).update(language="de")
        with pytest.raises(ProgrammingError), transaction.atomic():
            create_entry(
                knowledge_base=secret.knowledge_base,
                audience=secret.audience,
                text="Slipped in.",
                author=stranger,
            )
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kb_revision")
            deleted = cursor.rowcount

    assert (changed, deleted) == (0, 0)


def test_an_entry_is_not_moved_out_of_its_writers_sight(member, stranger):
    entry = make_entry("Open.")
    fraud = make_audience("fraud", groups=["fraud"])

    with acting_for(stranger), pytest.raises(ProgrammingError), transaction.atomic():
        Entry.objects.filter(pk=entry.pk).update(audience=fraud)
    with acting_for(member):
        assert Entry.objects.filter(pk=entry.pk).update(audience=fraud) == 1


def test_a_revision_is_judged_by_entries_that_its_deleter_may_not_see(secret, stranger):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_revision")
        with acting_for(stranger), pytest.raises(IntegrityError, match="only with its"):
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_what_a_rollback_took_back_is_told_again(secret, member, stranger):
    seen = {member: 1, stranger: 0}

    def break_off(inner) -> None:
        with transaction.atomic(), acting_for(inner):
            assert Entry.objects.count() == seen[inner]
            raise ZeroDivisionError

    for outer, inner in ((stranger, member), (member, stranger)):
        with acting_for(outer):
            assert Entry.objects.count() == seen[outer]
            with pytest.raises(ZeroDivisionError):
                break_off(inner)
            assert Entry.objects.count() == seen[outer]


def test_after_an_error_of_the_database_the_next_reads_for_themselves(
    secret, member, stranger
):
    for user, expected in ((stranger, 0), (member, 1), (stranger, 0)):
        with acting_for(user):
            with (
                pytest.raises(ProgrammingError),
                transaction.atomic(),
                connection.cursor() as cursor,
            ):
                cursor.execute("SELECT nonsense")
            assert Entry.objects.count() == expected


def test_a_cursor_that_reads_on_reads_for_who_opened_it(secret, member, stranger):
    make_entry("Open.")
    with transaction.atomic(), acting_for(stranger):
        rows = Entry.objects.order_by("pk").iterator(chunk_size=1)
        first = next(rows)
        with acting_for(member):
            assert Entry.objects.count() == 2
        rest = list(rows)

    assert [first, *rest] == list(Entry.objects.filter(text="Open."))


@pytest.fixture
def one_connection(transactional_db):
    """Let every thread of this process share one pooled connection."""
    pool = connection.settings_dict["OPTIONS"]["pool"]
    kept = dict(pool)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's
    pool.update(min_size=1, max_size=1)
    yield
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's
    pool.update(kept)


@pytest.mark.slow
def test_two_users_at_once_over_one_connection_each_see_their_own(one_connection):
    member, stranger = make_user(groups=["fraud"]), make_user()
    audience = make_audience("fraud", groups=["fraud"])
    make_entry("The secret limit is 900 euros.", audience=audience)
    make_entry("Open.")
    clients = []
    for user in (member, stranger):
        client = page_client(user)
        clients.append(client)
    connection.close()

    def read(number: int) -> tuple[bool, int]:
        client, user = clients[number % 2], (member, stranger)[number % 2]
        try:
            shown = client.get("/api/v1/entries").content.decode()
            with acting_for(user):
                return "secret" in shown, Entry.objects.count()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, range(24)))

    assert found == [(True, 2), (False, 1)] * 12
