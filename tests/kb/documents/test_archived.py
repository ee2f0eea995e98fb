"""An archived knowledge base is only read: not asked, not written, with nothing to be done."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.undo import ChangedSinceError
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.conflicts.finding import count_pending
from kb.documents.knowledge_bases import archive_knowledge_base
from kb.entries.bulk import Action, BulkChange, change_visible
from kb.entries.comments import Comment, add_comment, delete_comment, undo_deletion
from kb.entries.states import erase_entry, retire_entry
from kb.exceptions import KnowledgeBaseArchivedError
from kb.models import Entry, FollowedSource, KnowledgeBase
from kb.sources.services import check_due
from kb.synonyms.services import add_synonym
from kb.upkeep import undoing
from kb.upkeep.reminders import remind
from qa.evaluation.saved_cases import save_case
from qa.gaps import services as gaps
from qa.gaps.escalations import escalate
from qa.models import (
    Escalation,
    Gap,
    Policy,
    PolicyActivation,
    RefusalWording,
    Review,
    Vote,
)
from qa.policies.services import (
    activate,
    ensure_default_policy,
    make_version,
    new_version,
)
from qa.reviews.services import take_next
from qa.votes.services import vote
from tests.factories import (
    make_audience,
    make_curator,
    make_document,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers.registry import HANDLERS

pytestmark = pytest.mark.django_db

BASES = "/api/v1/knowledge-bases"
CARDS = f"{BASES}/cards"
REMEDY = "unarchive it first"


def archive(slug: str = "cards") -> KnowledgeBase:
    base = make_knowledge_base(slug)
    return archive_knowledge_base(knowledge_base_id=base.pk)


def slugs(response) -> list[str]:
    return [each["slug"] for each in response.json()["results"]]


def make_due(**fields) -> Entry:
    entry = make_entry(**fields)
    Entry.objects.filter(pk=entry.pk).update(
        verified_at=timezone.now() - timedelta(days=400)
    )
    return entry


def test_an_admin_archives_and_brings_back_and_both_are_in_the_audit(api):
    make_knowledge_base("travel")
    make_knowledge_base("cards")
    client = api(make_user(Role.ADMIN))
    before = client.get(CARDS).json()

    archived = client.post(f"{CARDS}/archive")
    again = client.post(f"{CARDS}/archive")

    assert archived.status_code == 200, archived.json()
    assert archived.json()["archived_at"] is not None
    assert again.json() == archived.json() == client.get(CARDS).json()
    assert slugs(client.get(BASES)) == ["travel"]
    assert slugs(client.get(BASES, {"archived": "false"})) == ["travel"]
    assert slugs(client.get(BASES, {"archived": "true"})) == ["cards"]
    assert client.post(f"{CARDS}/unarchive").json() == before
    assert slugs(client.get(BASES)) == ["cards", "travel"]
    rows = AuditEntry.objects.filter(kind="knowledge base").order_by("pk")
    assert [(row.action, row.subject, [*row.changes]) for row in rows] == [
        ("update", "cards", ["archived_at"])
    ] * 2


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, Role.CURATOR])
def test_only_admins_archive(api, role):
    make_knowledge_base("cards")
    client = api(make_user(role))

    for verb in ("archive", "unarchive"):
        assert client.post(f"{CARDS}/{verb}").status_code == 403
    assert KnowledgeBase.objects.in_use().exists()


def test_the_default_is_one_in_use_and_the_rest_stays_as_it_was(api):
    make_knowledge_base("cards")
    make_knowledge_base("travel")
    client = api(make_user(Role.ADMIN))

    client.post(f"{CARDS}/archive")

    assert client.get(f"{BASES}/travel").json()["is_default"] is True
    assert client.get(CARDS).json()["is_default"] is False
    client.post(f"{CARDS}/unarchive")
    assert client.get(CARDS).json()["is_default"] is True


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("post", "entries", {"text": "It costs 12.", "audience": "everyone"}),
        ("patch", "entries/{entry}", {"text": "It costs 13."}),
        ("post", "entries/{entry}/verify", {}),
        ("post", "entries/{entry}/retire", {}),
        ("post", "entries/{entry}/flag", {}),
        ("put", "entries/{entry}/also_asked", {"also_asked": ["What is the fee?"]}),
        ("post", "documents", {"title": "Prices", "audience": "everyone"}),
        ("patch", "documents/{document}", {"title": "Prices"}),
        ("post", "synonyms", {"word": "PIN", "means": "secret number"}),
        ("post", "proposals", {"audience": "everyone", "seeds": ["fees"]}),
        (
            "post",
            "sources",
            {
                "name": "Site", "kind": "sitemap", "address": "https://example.org",
                "rules": [{"audience": "everyone"}],
            },
        ),
        ("post", "knowledge-bases/cards/calibrate", {}),
        ("post", "ask", {"question": "What does a card cost?"}),
        ("post", "search", {"question": "What does a card cost?"}),
    ],
)  # fmt: skip
def test_what_is_archived_is_neither_written_nor_asked(api, method, address, body):
    entry, document = make_entry(), make_document()
    archive()
    make_knowledge_base("travel")
    # Calibrating is for admins; the rest is written by their namesakes too.
    client = api(make_user(Role.ADMIN))
    names_base = method == "post" and "/" not in address
    given = {**body, **({"knowledge_base": "cards"} if names_base else {})}
    path = address.format(entry=entry.pk, document=document.pk)
    before = list(Entry.objects.values()), Job.objects.count()

    refused = getattr(client, method)(f"/api/v1/{path}", given, format="json")

    assert refused.status_code == 409, refused.json()
    error = refused.json()["error"]
    assert error["code"] == "knowledge_base_archived"
    assert REMEDY in error["message"]
    assert (list(Entry.objects.values()), Job.objects.count()) == before


def test_nobody_works_on_what_is_archived(api):
    """Each is done while it is in use, and refused when it is not."""
    entry, boss = make_entry(), make_user(Role.ADMIN)
    base = entry.knowledge_base
    asker = make_user()
    answer, other = (make_answer(asker, question=f"Is it {n}?") for n in (1, 2))
    voted = vote(other.pk, user=boss, is_up=False)
    assert voted is not None
    gap = Gap.objects.create(
        knowledge_base=base, question="Is it free?", vector=[1.0] * 384,
        first_seen=timezone.now(), last_seen=timezone.now(),
    )  # fmt: skip
    review = Review.objects.create(answer=answer)
    escalation = escalate(answer.pk, user=asker)
    made = new_version(ensure_default_policy(base), by=boss, alpha=0.7)
    client = api(boss)
    comment = add_comment(entry_id=entry.pk, by=boss, text="Ask Olga.")
    gone = delete_comment(comment_id=comment.pk, by=boss)
    kept = add_comment(entry_id=entry.pk, by=boss, text="Ask Carla.")
    dismissed = gaps.dismiss(gap.pk, by=boss, reason="None of ours.")
    before = Gap.objects.get(pk=gap.pk)
    reopened, noted = gaps.reopen_undoably(gap.pk, by=boss)
    assert (dismissed.state, before.state) == ("dismissed", "dismissed")
    archive()
    there = [
        list(model.objects.order_by("pk").values())
        for model in (Comment, Vote, Gap, Review, Escalation, Policy, PolicyActivation)
    ]

    for method, path, body in (
        ("put", f"answers/{answer.pk}/vote", {"rating": "down"}),
        ("put", f"answers/{other.pk}/vote", {"rating": None}),
        ("put", f"votes/{voted.pk}/handled", None),
        ("post", f"gaps/{gap.pk}/dismiss", {"reason": "None of ours."}),
        ("put", f"reviews/{review.pk}/lock", None),
        ("post", f"escalations/{escalation.pk}/close", {"reason": "Ours no more."}),
        ("post", "policies", {"name": "new", "based_on": made.pk, "alpha": 0.6}),
        ("post", f"policies/{made.pk}/activate", {"reason": "It is better."}),
        ("post", f"policies/{made.pk}/roll-back", None),
        ("post", f"policies/{made.pk}/test-cases", None),
        ("patch", f"{BASES[8:]}/cards/self-calibration", {"wrong_share_target": 20}),
    ):
        refused = getattr(client, method)(f"/api/v1/{path}", body, format="json")
        assert refused.status_code == 409, (path, refused.content)
        assert REMEDY in refused.json()["error"]["message"], path
    acts: tuple[Callable[[], object], ...] = (
        lambda: add_comment(entry_id=entry.pk, by=boss, text="Ask Eva."),
        lambda: delete_comment(comment_id=kept.pk, by=boss),
        lambda: undo_deletion(gone, boss),
        lambda: save_case(
            "Is it free?", knowledge_base=base, expects_answer=False, entries=(),
            asker=boss, by=boss,
        ),
        lambda: RefusalWording(knowledge_base=base, language="en", text="No.").clean(),
    )  # fmt: skip
    for act in acts:
        with pytest.raises((KnowledgeBaseArchivedError, ValidationError), match=REMEDY):
            act()
    with pytest.raises(ChangedSinceError, match=REMEDY):
        gaps.undo_changes({"rows": [noted]}, boss)
    assert reopened.state == "open"

    assert take_next(boss) is None
    assert there == [
        list(model.objects.order_by("pk").values())
        for model in (Comment, Vote, Gap, Review, Escalation, Policy, PolicyActivation)
    ]


def test_what_is_archived_loses_no_test_case_and_no_wording_in_the_admin(client):
    base, boss = make_knowledge_base(), make_staff(Role.ADMIN)
    case = save_case(
        "Is it free?", knowledge_base=base, expects_answer=False, entries=(),
        asker=boss, by=boss,
    )  # fmt: skip
    wording = RefusalWording.objects.create(
        knowledge_base=base, language="en", text="No."
    )
    other = make_knowledge_base("loans")
    client.force_login(boss)
    pages = [
        reverse(f"admin:qa_{name}_delete", args=[row.pk])
        for name, row in (("savedcase", case), ("refusalwording", wording))
    ]
    assert [client.get(page).status_code for page in pages] == [200, 200]
    archive()

    assert [client.get(page).status_code for page in pages] == [403, 403]
    wording.knowledge_base = other  # as the form does
    with pytest.raises(ValidationError, match=REMEDY):
        wording.clean()


def test_pages_of_what_is_archived_are_read_and_offer_nothing(client):
    entry, boss = make_entry(), make_staff(Role.ADMIN)
    answer = make_answer(boss, question="Is it free?", cited=(entry,))
    add_comment(entry_id=entry.pk, by=boss, text="Ask Olga.")
    client.force_login(boss)
    pages = [reverse("answer", args=[answer.pk]), reverse("entry", args=[entry.pk])]
    before = [client.get(page).content.decode() for page in pages]
    archive()

    after = [client.get(page).content.decode() for page in pages]

    for offered in ('id="vote-up"', 'id="comment-text"', "Delete the comment"):
        assert any(offered in page for page in before), offered
        assert not any(offered in page for page in after), offered
    for page in after:
        assert "is archived." in page
    assert "Ask Olga." in after[1]


def test_a_probe_that_takes_anothers_place_changes_what_is_archived(api):
    """Else the thresholds would not fit when it is in use again."""
    policy = ensure_default_policy(make_knowledge_base())
    archive()

    made = make_version(Policy.objects.get(pk=policy.pk), by=None, min_confidence=0.6)
    activate(made, by=None)

    assert Policy.objects.get(is_active=True) == made
    with pytest.raises(KnowledgeBaseArchivedError, match=REMEDY):
        new_version(made, by=None, min_confidence=0.7)


def test_no_file_is_imported_into_what_is_archived(api):
    make_audience()
    archive()
    file = SimpleUploadedFile("prices.csv", b"text\nA card costs 12 euros.\n")
    given = {"file": file, "audience": "everyone", "knowledge_base": "cards"}

    refused = api(make_curator()).post("/api/v1/imports", given)

    assert refused.status_code == 409, refused.json()
    assert refused.json()["error"]["code"] == "knowledge_base_archived"


def test_where_none_is_named_knowledge_goes_to_the_one_in_use(api):
    make_audience()
    archive()
    make_knowledge_base("travel")
    new = {"text": "Bags of 8 kg are free.", "audience": "everyone"}

    made = api(make_curator()).post("/api/v1/entries", new, format="json")

    assert made.json()["knowledge_base"] == "travel"


def test_many_at_once_are_refused_one_by_one_and_nothing_is_undone():
    olga, entry = make_curator(), make_entry()
    other = make_entry("Bags are free.", knowledge_base=make_knowledge_base("travel"))
    _, noted = undoing.undoable(
        lambda: retire_entry(entry_id=entry.pk, by=olga), entry.pk, by=olga
    )
    archive()

    report = change_visible([entry.pk, other.pk], BulkChange(Action.RETIRE), by=olga)

    assert report.changed == 1
    ((failed, said, code),) = report.failures
    assert (failed, code) == (entry.pk, "knowledge_base_archived")
    assert REMEDY in said
    kept = {**noted, **{key: _keyed(noted[key]) for key in ("before", "after")}}
    with pytest.raises(KnowledgeBaseArchivedError, match="archived; nothing is undone"):
        undoing.undo_change(kept, olga)


def _keyed(states):
    """Return states as they are when they were kept as JSON."""
    return {str(key): state for key, state in states.items()}


def test_a_persons_data_is_erased_from_what_is_archived():
    entry = make_entry()
    archive()

    erase_entry(entry_id=entry.pk)

    assert not Entry.objects.exists()


def test_what_is_archived_is_read_and_exported(api):
    entry = make_entry()
    archive()
    client = api(make_curator())

    assert client.get(f"/api/v1/entries/{entry.pk}").status_code == 200
    assert client.get(f"/api/v1/entries/{entry.pk}/revisions").status_code == 200
    table = client.get("/api/v1/entries.csv", {"knowledge_base": "cards"})
    assert b"12 euros" in table.getvalue()
    asked = client.post("/api/v1/exports", {"knowledge_base": "cards"}, format="json")
    assert asked.status_code == 202, asked.json()


@pytest.mark.slow
def test_nothing_is_due_until_it_is_in_use_again(api):
    owner = make_user(Role.CURATOR)
    owner.email = "olga@example.org"
    owner.save()
    make_due(owner=owner)
    client = api(owner)
    admin = api(make_user(Role.ADMIN))
    before = client.get("/api/v1/entries/due").json()
    assert len(before["results"]) == 1
    waiting = client.get("/api/v1/inbox").json()
    assert waiting["results"]

    admin.post(f"{CARDS}/archive")

    assert client.get("/api/v1/entries/due").json()["results"] == []
    assert client.get("/api/v1/inbox").json()["results"] == []
    assert remind(owner, at=timezone.now()) == 0
    admin.post(f"{CARDS}/unarchive")
    assert client.get("/api/v1/entries/due").json() == before
    assert client.get("/api/v1/inbox").json() == waiting


def test_no_job_works_on_what_is_archived():
    entry = make_due()
    KnowledgeBase.objects.update(when_overdue="doubt")
    FollowedSource.objects.create(
        name="Prices", kind="files", address="prices", every_hours=24,
        owner=make_curator(), knowledge_base=make_knowledge_base(),
    )  # fmt: skip
    assert count_pending() == 1
    archive()

    for kind in ("kb.keep_upkeep", "kb.find_conflicts", "qa.calibrate_where_due"):
        run_job(enqueue(kind, {}).pk, HANDLERS)

    entry.refresh_from_db()
    assert entry.state == "verified"
    assert count_pending() == 0
    assert check_due() == 0
    KnowledgeBase.objects.update(archived_at=None)
    assert check_due() == 1
    run_job(enqueue("kb.keep_upkeep", {}).pk, HANDLERS)
    entry.refresh_from_db()
    assert entry.state == "needs_review"


def test_the_flag_is_exported_and_restored(tmp_path):
    add_synonym(
        knowledge_base=make_knowledge_base(), word="PIN", means="number",
        by=make_curator(),
    )  # fmt: skip
    at = archive().archived_at
    path = str(tmp_path / "a.zip")
    call_command("export_knowledge", path, stdout=StringIO())
    KnowledgeBase.objects.update(archived_at=None)

    call_command("restore_knowledge", path, stdout=StringIO())

    assert KnowledgeBase.objects.get().archived_at == at


@pytest.mark.parametrize("verb", ["archive", "unarchive"])
def test_the_admin_asks_first_and_offers_what_can_be_done(client, verb):
    base = make_knowledge_base()
    if verb == "unarchive":
        archive()
    client.force_login(make_staff(Role.ADMIN))
    change = f"/admin/kb/knowledgebase/{base.pk}/change/"
    other = {"archive": "unarchive", "unarchive": "archive"}[verb]
    shown = client.get(change).content.decode()
    address, useless = (
        reverse(f"admin:kb_knowledgebase_{name}_this", args=[base.pk])
        for name in (verb, other)
    )
    assert f'"{address}"' in shown
    assert f'"{useless}"' not in shown

    asked = client.get(address)
    assert b"Confirm" in asked.content
    done = client.post(address, follow=True)

    base.refresh_from_db()
    assert (base.archived_at is not None) is (verb == "archive")
    assert done.redirect_chain[0][0] == change
    assert f'"{useless}"' in done.content.decode()


def test_the_admin_lists_what_is_archived_by_a_filter_and_offers_it_nowhere(client):
    archive()
    make_knowledge_base("travel")
    client.force_login(make_staff(Role.ADMIN))
    listed = "/admin/kb/knowledgebase/"

    in_use = client.get(listed).content.decode()
    archived = client.get(listed, {"archived": "yes"}).content.decode()

    assert ">travel<" in in_use
    assert ">cards<" not in in_use
    assert ">cards<" in archived
    assert ">travel<" not in archived
    assert "Show all" not in archived
    for page in (
        "kb_entry_add", "kb_document_add", "kb_import_bring", "kb_followedsource_add",
        "kb_synonym_add", "integrations_widget_add",
    ):  # fmt: skip
        shown = client.get(reverse(f"admin:{page}")).content.decode()
        assert ">Travel</option>" in shown, page
        assert ">Cards</option>" not in shown, page
    assert (
        ">Cards</option>"
        in client.get(reverse("admin:kb_entry_exports")).content.decode()
    )
