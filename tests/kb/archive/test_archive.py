"""What was exported is restored as it was, and nothing else is restored at all."""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.archive.format import TABLES
from kb.archive.restoring import Newcomers, restore_archive
from kb.archive.writing import Contents, write_archive
from kb.embedding.services import active_model
from kb.entries.services import edit_entry
from kb.entries.wordings import Wording
from kb.exceptions import InvalidArchiveError, InvalidKnowledgeError
from kb.models import Audience, Entry, EntryEmbedding, KnowledgeBase, Proposal, Tag
from kb.synonyms.models import Synonym
from tests.examples import SHARED_FIXTURES
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.kb.archive.knowledge import commit, counts, exported, fill, wipe

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

ALL_NEW = Newcomers(create_users=True, create_groups=True)
_BUILT: list[bytes] = []  # made once, for it takes its time


def test_an_archive_holds_every_field_of_what_it_keeps():
    for table in TABLES:
        of_model = {
            field.name
            for field in (
                *table.model._meta.concrete_fields,
                *table.model._meta.many_to_many,
            )
        }
        kept = {column.field for column in table.columns}

        assert (table.name, kept | table.left_out) == (table.name, of_model)


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(seed=st.integers(0, 2**32), is_one=st.booleans())
def test_a_restored_archive_makes_the_same_archive_again(tmp_path, seed, is_one):
    with transaction.atomic():
        fill(seed, "cards")
        fill(seed + 1, "loans")
        slug = "cards" if is_one else ""
        first = exported(tmp_path / "first.zip", knowledge_base=slug)
        wipe()
        if is_one:  # among other rows, under other ids
            fill(seed + 2, "others")

        restore_archive(tmp_path / "first.zip", newcomers=ALL_NEW)

        again = exported(tmp_path / "again.zip", knowledge_base=slug)
        missing = Entry.objects.exclude(
            pk__in=EntryEmbedding.objects.filter(model=active_model()).values("entry")
        )
        is_embedded = not missing.exists()
        transaction.set_rollback(True)
    assert again == first
    assert is_embedded


def test_the_same_state_makes_the_same_bytes(tmp_path):
    fill(1)

    assert exported(tmp_path / "a.zip") == exported(tmp_path / "b.zip")


def test_restored_entries_are_found_and_keep_who_verified_when(tmp_path):
    entry = make_entry(
        "A replacement card costs 12 euros.", question="What is the fee?"
    )
    edit_entry(
        entry_id=entry.pk, author=make_curator(), may_verify=True, text="It costs 13."
    )
    entry.refresh_from_db()
    exported(tmp_path / "a.zip")
    wipe()

    restore_archive(tmp_path / "a.zip", newcomers=ALL_NEW)

    restored = Entry.objects.get()
    assert restored.verified_at == entry.verified_at
    assert restored.updated_at == entry.updated_at
    assert restored.verified_by is not None
    assert restored.verified_by.username == "curator"
    assert not restored.verified_by.is_active
    assert not restored.verified_by.has_usable_password()
    revisions = restored.revisions.order_by("number").values_list("text", flat=True)
    assert list(revisions) == ["A replacement card costs 12 euros.", "It costs 13."]


def test_a_reader_exports_only_what_he_may_see(tmp_path):
    shown = make_entry("Cards cost 12 euros.")
    secret = make_audience("secret", groups=["secret"])
    make_entry("The merger is in May.", audience=secret)
    edit_entry(
        entry_id=shown.pk, author=make_curator(), may_verify=True, audience=secret
    )
    edit_entry(
        entry_id=shown.pk,
        author=make_curator(),
        may_verify=True,
        audience=make_audience(),
    )

    exported(tmp_path / "a.zip", reader=make_curator())

    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "Cards cost" in held["entries.jsonl"]
    assert "merger" not in "".join(held.values())
    assert "secret" not in "".join(
        held[name] for name in ("audiences.jsonl", "entries.jsonl", "revisions.jsonl")
    )
    assert json.loads(held["manifest.json"])["complete"] is False


def test_an_unknown_knowledge_base_is_told_and_leaves_no_file(tmp_path):
    with pytest.raises(InvalidKnowledgeError, match="'nowhere'"):
        write_archive(tmp_path / "a.zip", Contents(knowledge_base="nowhere"))

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of some knowledge, which is gone from here."""
    path = tmp_path / "a.zip"
    if not _BUILT:
        fill(3)
        _BUILT.append(exported(path))
        wipe()
    path.write_bytes(_BUILT[0])
    return path


def test_users_and_groups_that_are_not_here_are_refused_by_name(archive):
    before = counts()

    with pytest.raises(InvalidArchiveError, match=r"users: 'curator', 'olga'"):
        restore_archive(archive)
    with pytest.raises(InvalidArchiveError, match=r"groups: 'board', 'finance'"):
        restore_archive(archive, newcomers=Newcomers(create_users=True))

    assert counts() == before


def test_somebody_else_may_stand_in_for_a_user(archive):
    vera = make_user(username="vera")

    restore_archive(
        archive,
        newcomers=Newcomers(
            create_groups=True, users={"curator": "vera", "olga": "vera"}
        ),
    )

    assert list(User.objects.all()) == [vera]
    assert vera.revisions.exists()


def test_a_dry_run_says_what_would_be_and_writes_nothing(archive):
    before = counts()

    restored = restore_archive(archive, newcomers=ALL_NEW, dry_run=True)

    assert restored.rows["entries"] > 0
    assert restored.new_users == ("curator", "olga")
    assert counts() == before


def test_a_knowledge_base_that_holds_something_is_not_written_over(archive):
    make_entry(knowledge_base=make_knowledge_base("cards"))

    with pytest.raises(InvalidArchiveError, match="'cards' holds knowledge already"):
        restore_archive(archive, newcomers=ALL_NEW)


def test_an_empty_knowledge_base_of_the_name_is_filled(archive):
    make_knowledge_base("cards", language="de")

    restore_archive(archive, newcomers=ALL_NEW)

    assert KnowledgeBase.objects.get().entries.exists()


def test_an_archive_is_restored_beside_its_own_knowledge_base(tmp_path):
    fill(3, "cards")
    path = tmp_path / "cards.zip"
    exported(path, knowledge_base="cards")

    restored = restore_archive(path, slug="cards-2")

    assert restored.knowledge_bases == ("cards-2",)
    first, second = (KnowledgeBase.objects.get(slug=s) for s in ("cards", "cards-2"))
    for kept in ("entries", "documents", "synonyms"):
        held = getattr(second, kept).count()
        assert (kept, held) == (kept, getattr(first, kept).count())
    assert second.entries.exists()
    assert not second.entries.filter(pk__in=first.entries.values("pk")).exists()
    refused(path, "under another slug")


@pytest.mark.parametrize(
    ("slug", "knowledge_base", "why"),
    [("Not one", "cards", "'Not one'"), ("third", "", "cards, loans")],
)
def test_a_slug_that_can_not_be_given_is_refused(tmp_path, slug, knowledge_base, why):
    fill(4, "cards")
    fill(5, "loans")
    path = tmp_path / "a.zip"
    exported(path, knowledge_base=knowledge_base)
    before = counts()

    with pytest.raises(InvalidArchiveError, match=why):
        restore_archive(path, slug=slug)

    assert counts() == before


def test_an_audience_of_other_people_is_refused(archive):
    Audience.objects.create(slug="finance", name="Finance", everyone=True)

    with pytest.raises(InvalidArchiveError, match="'finance' has other members here"):
        restore_archive(archive, newcomers=ALL_NEW)


def rewritten(path: Path, **changed: bytes) -> Path:
    """Write the archive again with other contents of some files."""
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held |= {name.replace("__", "."): content for name, content in changed.items()}
    other = path.with_name("other.zip")
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return other


def refused(path: Path, match: str) -> None:
    before = counts()
    with pytest.raises(InvalidArchiveError, match=match):
        restore_archive(path, newcomers=ALL_NEW)
    commit()
    assert counts() == before


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    for content in (b"", b"PK\x03\x04", b"question,text\n"):
        path.write_bytes(content)
        refused(path, "not a readable archive")


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=SHARED_FIXTURES,
)
@given(data=st.data())
def test_a_damaged_archive_writes_nothing(archive, data):
    content = archive.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    cut = data.draw(st.booleans())
    damaged = archive.with_name("damaged.zip")
    other = bytes([content[at] ^ data.draw(st.integers(1, 255))])
    damaged.write_bytes(
        content[:at] if cut else content[:at] + other + content[at + 1 :]
    )
    before = counts()

    try:
        restore_archive(damaged, newcomers=ALL_NEW, dry_run=True)
    except InvalidArchiveError:
        pass
    else:  # a byte that no reader looks at, such as one of a time
        assert not cut

    assert counts() == before


def test_a_foreign_zip_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("../etc/passwd", "x")
    refused(path, "a knowledge archive holds")


def test_a_manifest_of_something_else_or_of_later_is_refused(archive):
    refused(
        rewritten(archive, manifest__json=b"{}"),
        "does not belong to a knowledge archive",
    )
    refused(rewritten(archive, manifest__json=b"nothing"), "not JSON")
    refused(
        rewritten(
            archive, manifest__json=b'{"format": "nescio-knowledge", "version": 8}'
        ),
        "version 8",
    )
    refused(
        rewritten(
            archive, manifest__json=b'{"format": "nescio-knowledge", "version": 7}'
        ),
        "is missing or has invalid values",
    )


def test_changed_rows_are_refused_by_their_digest(archive):
    with zipfile.ZipFile(archive) as held:
        entries = held.read("entries.jsonl")
    changed = entries.replace(b'"state":"', b'"State":"', 1)
    swapped = b"".join(reversed(entries.splitlines(keepends=True)))
    shorter = entries.removesuffix(b"\n")

    refused(rewritten(archive, entries__jsonl=shorter), "does not have the")
    refused(rewritten(archive, entries__jsonl=swapped), "does not match manifest.json")
    refused(rewritten(archive, entries__jsonl=changed), "State")


def test_a_bomb_is_refused_before_it_is_unpacked(archive):
    refused(
        rewritten(archive, entries__jsonl=b" " * 70_000_000),
        "would grow|does not have the",
    )


def with_row(path: Path, table: str, **values: object) -> Path:
    """Write the archive again with other values in the first row of a table."""
    with zipfile.ZipFile(path) as archive:
        lines = archive.read(f"{table}.jsonl").splitlines(keepends=True)
        manifest = json.loads(archive.read("manifest.json"))
    lines[0] = json.dumps({**json.loads(lines[0]), **values}).encode() + b"\n"
    content = b"".join(lines)
    manifest["files"][table] = {
        "rows": len(lines),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return rewritten(
        path,
        **{f"{table}__jsonl": content, "manifest__json": json.dumps(manifest).encode()},
    )


@pytest.mark.parametrize(
    ("table", "values", "match"),
    [
        ("entries", {"text": "x" * 8001}, "entries.jsonl, line 1: text has 8001"),
        ("entries", {"text": None}, "text is missing"),
        ("entries", {"text": 3}, "is not a valid value of the field"),
        ("entries", {"text": "nul\0"}, "cannot be stored in the database"),
        ("entries", {"state": "true"}, "state 'true' is not one of"),
        ("entries", {"confidence": True}, "confidence 'True'"),
        ("entries", {"confidence": 7}, "contradicts itself"),
        ("entries", {"document": 999}, "document 999 is not a row of documents"),
        ("entries", {"document": True}, "is not a row of"),
        ("entries", {"audience": "nobody"}, "audience 'nobody' is not in the archive"),
        ("entries", {"audience": None}, "audience is missing"),
        ("entries", {"owner": ["x"]}, "is not a name"),
        ("entries", {"created_at": "2026-01-01T00:00:00"}, "created_at"),
        ("entries", {"extra": 1}, "fields extra are"),
        ("revisions", {"number": -1}, "number '-1'"),
        ("proposals", {"nearest": [[999, 0.5]]}, "nearest 999 is not a row of entries"),
        ("proposals", {"nearest": [[None, 0.5]]}, "not a pair of row and number"),
        ("proposals", {"nearest": [[1]]}, "not a pair of row and number"),
        ("proposals", {"nearest": 3}, "not a pair of row and number"),
        ("proposals", {"random_seed": 2**63}, "random_seed"),
        ("audiences", {"groups": "board"}, "groups 'board' is not a list of names"),
        ("knowledge_bases", {"language": "klingon"}, "language has 7 characters"),
    ],
)
def test_a_row_that_may_not_be_written_is_told_by_its_line(
    archive, table, values, match
):
    refused(with_row(archive, table, **values), match)


_FACETS = ("product_line", "line_of_business")
_LATER: dict[int, tuple[dict[str, Sequence[str]], Sequence[str]]] = {
    1: (
        {"entries": _FACETS, "revisions": _FACETS},
        ("tags", "proposals", "wordings", "synonyms"),
    ),
    2: ({}, ("wordings", "synonyms")),
    3: ({"wordings": ("is_imported",)}, ("synonyms",)),
    4: ({}, ("synonyms",)),
}
"""By version of the format: columns of tables, and tables, that came later."""
_CAME_LATER = {
    "tags": Tag,
    "proposals": Proposal,
    "wordings": Wording,
    "synonyms": Synonym,
}


@pytest.mark.parametrize("version", _LATER)
def test_an_earlier_archive_is_restored_without_what_came_later(
    archive, tmp_path, version
):
    columns, tables = _LATER[version]
    with zipfile.ZipFile(archive) as held:
        manifest = json.loads(held.read("manifest.json"))
        kept = {
            name: held.read(f"{name}.jsonl")
            for name in manifest["files"].keys() - {*tables}
        }
    for name, gone in columns.items():
        if name in kept:
            lines = kept[name].splitlines()
            kept[name] = b"".join(_without(line, gone) for line in lines)
    manifest["version"] = version
    manifest["files"] = {
        name: manifest["files"][name]
        | {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in kept.items()
    }
    old = tmp_path / "old.zip"
    with zipfile.ZipFile(old, "w") as made:
        for name, content in kept.items():
            made.writestr(f"{name}.jsonl", content)
        made.writestr("manifest.json", json.dumps(manifest))

    restored = restore_archive(old, newcomers=ALL_NEW)

    assert Entry.objects.count() == restored.rows["entries"] > 0
    for name, model in _CAME_LATER.items():
        assert model._default_manager.exists() == (name not in tables)
    assert not Wording.objects.filter(is_imported=True).exists()


def _without(line: bytes, columns: Sequence[str]) -> bytes:
    row = json.loads(line)
    return (
        json.dumps({k: v for k, v in row.items() if k not in columns}).encode() + b"\n"
    )
