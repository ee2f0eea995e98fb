"""An entry that is cleaned and then opened opens nothing of what it said before."""

import zipfile

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.acting import acting_for
from accounts.roles import Role
from kb.archive.writing import Contents, write_archive
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import erase_entry, restore_revision
from kb.exceptions import RevisionOfOthersError
from kb.models import Entry, Proposal, Revision
from qa.models import Answer, Escalation, Review
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_curator,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db
# A word that no number, time or hash in an export can hold by chance.
SECRET = "Zwirbelschloss"


@pytest.fixture
def insider() -> User:
    return make_user(Role.CURATOR, username="insider", groups=["vault"])


@pytest.fixture
def outsider() -> User:
    return make_staff(Role.CURATOR, username="outsider")


def change(entry: Entry, **changes) -> None:
    edit_entry(entry_id=entry.pk, author=make_curator(), may_verify=True, **changes)


@pytest.fixture
def opened(insider) -> Entry:
    """An entry of the vault whose text was cleaned before everyone was let in."""
    entry = create_entry(
        author=insider,
        text=f"The code of the vault is {SECRET}.",
        audience=make_audience("vault", groups=["vault"]),
        knowledge_base=make_knowledge_base(),
        verify=True,
        origin=Entry.Origin.ENRICHED,
    )
    cited = make_answer(
        insider,
        question="How is the vault opened?",
        cited=(entry,),
        text=f"With {SECRET}.",
        reasoning=f"It says {SECRET}.",
    )
    refused = make_answer(make_user(), question="How is it opened?")
    Escalation.objects.create(
        answer=refused, raised_by=refused.asker, state=Escalation.State.ANSWERED,
        reply=f"With {SECRET}.", replied_by=insider, replied_at=timezone.now(),
        entry=entry,
    )  # fmt: skip
    Review.objects.create(answer=cited, note=f"{SECRET} is right.")
    Proposal.objects.create(
        knowledge_base=entry.knowledge_base, entry=entry, seed_question="?",
        question="?", question_sha256="0" * 64, answer=SECRET, sentence=entry.text,
        stated=0.5, agreement=0.5, confidence=0.5, model_name="test",
        model_fingerprint="0" * 64, prompt_version="1", random_seed=0,
    )  # fmt: skip
    change(entry, text="The code of the vault is with the porter.")
    change(entry, audience=make_audience())
    return entry


def numbers(user: User) -> list[int]:
    with acting_for(user):
        return sorted(Revision.objects.values_list("number", flat=True))


def test_the_database_shows_a_revision_to_its_own_audience(opened, insider, outsider):
    assert numbers(outsider) == [3]
    assert numbers(insider) == [1, 2, 3]
    assert numbers(User.objects.create_superuser("root")) == [1, 2, 3]
    assert [r.number for r in Revision.objects.visible_to(outsider)] == [3]
    assert Revision.objects.visible_to(insider).count() == 3


@pytest.mark.slow
def test_no_page_tells_what_it_said_before(opened, outsider):
    client = page_client(outsider)
    entry, answer = opened.pk, Answer.objects.get(outcome="answered")
    proposal = Proposal.objects.get().pk
    review, escalation = Review.objects.get().pk, Escalation.objects.get().pk
    statuses = {}

    for address in (
        f"/api/v1/entries/{entry}",
        f"/api/v1/entries/{entry}/revisions",
        f"/admin/kb/entry/{entry}/change/",
        f"/admin/kb/entry/{entry}/history/",
        f"/admin/kb/entry/{entry}/compare",
        f"/admin/kb/entry/{entry}/compare?old=1&new=3",
        f"/admin/kb/entry/{entry}/revisions/1/restore/",
        f"/admin/kb/entry/{entry}/revisions/1/restore",
        f"/api/v1/answers/{answer.pk}",
        f"/answers/{answer.pk}",
        f"/admin/qa/answer/{answer.pk}/change/",
        "/api/v1/proposals",
        f"/api/v1/proposals/{proposal}",
        f"/admin/kb/proposal/{proposal}/change/",
        "/api/v1/reviews",
        f"/admin/qa/review/{review}/change/",
        "/api/v1/escalations",
        f"/admin/qa/escalation/{escalation}/change/",
        "/api/v1/entries.csv",
    ):
        response = client.get(address)
        statuses[address] = response.status_code
        assert SECRET not in response.getvalue().decode(), address

    assert statuses[f"/admin/kb/entry/{entry}/compare"] == 200
    assert statuses[f"/admin/kb/entry/{entry}/compare?old=1&new=3"] == 404
    assert statuses[f"/admin/kb/entry/{entry}/history/"] == 200


def test_who_belongs_to_both_reads_the_whole_history(opened, insider, api):
    client = api(insider)

    shown = client.get(f"/api/v1/entries/{opened.pk}/revisions").data["results"]

    assert [(row["number"], SECRET in row["text"]) for row in shown] == [
        (3, False), (2, False), (1, True),
    ]  # fmt: skip
    assert client.get("/api/v1/proposals").data["results"] != []


def test_an_export_holds_what_its_reader_may_see_of_the_history(
    opened, insider, outsider, tmp_path
):
    held = {}
    for reader in (insider, outsider):
        path = tmp_path / f"{reader}.zip"
        write_archive(path, Contents(reader=reader))
        with zipfile.ZipFile(path) as archive:
            tables = [archive.read(name).decode() for name in archive.namelist()]
        held[reader] = [SECRET in table for table in tables]

    assert any(held[insider])
    assert not any(held[outsider])


def test_a_secret_revision_is_not_restored_into_an_open_entry(
    opened, insider, outsider, api
):
    address = f"/api/v1/entries/{opened.pk}/revisions/1/restore"

    hidden = api(outsider).post(address, {}, format="json")
    refused = api(insider).post(address, {}, format="json")

    assert (hidden.status_code, refused.status_code) == (404, 409)
    assert refused.json()["error"]["code"] == "revision_of_others"
    assert "give the entry the audience 'vault' first" in str(refused.json())
    opened.refresh_from_db()
    assert SECRET not in opened.text


def test_it_is_restored_once_the_entry_is_back_in_its_audience(opened, insider):
    change(opened, audience=make_audience("vault"))

    back = restore_revision(entry_id=opened.pk, number=1, by=insider, may_verify=True)

    assert SECRET in back.text


def test_a_revision_of_some_is_not_restored_for_others(opened, insider):
    change(opened, audience=make_audience("tellers", groups=["tellers"]))
    change(opened, audience=make_audience("both", groups=["tellers", "vault"]))

    for number in (1, 4):
        with pytest.raises(RevisionOfOthersError):
            restore_revision(
                entry_id=opened.pk, number=number, by=insider, may_verify=True
            )


def test_a_revision_of_an_audience_that_is_gone_is_left_to_superusers(
    opened, insider, outsider
):
    make_audience("vault").delete()

    assert numbers(outsider) == [3]
    assert numbers(insider) == [1, 3]  # 1 is evidence of the insider's own answer
    root = User.objects.create_superuser("root")
    assert numbers(root) == [1, 2, 3]
    with pytest.raises(RevisionOfOthersError, match="deleted or unknown"):
        restore_revision(entry_id=opened.pk, number=1, by=root, may_verify=True)


def test_who_reads_only_the_end_of_a_history_goes_on_with_it(opened, outsider):
    with acting_for(outsider):
        change(opened, text="Ask the porter for the code.")
        assert numbers(outsider) == [3, 4]
        erase_entry(entry_id=opened.pk)

    assert not Revision.objects.exists()
    assert not Entry.objects.exists()
