"""Files that are made to cost much, read in a process that may not."""

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jobs.exceptions import JobCancelledError
from kb.imports.readers import (
    BadRow,
    Fact,
    ImportFileError,
    SourceDocument,
    UnreadColumns,
    Withdrawn,
    read,
)
from kb.imports.readers.child import read_in_child

from .files import LIMITS, items, make_archive, make_docx, make_excel, make_pdf

pytestmark = pytest.mark.slow

_WORD = (
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    b"<w:body>%s</w:body></w:document>"
)
_TYPES = (
    b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    b'relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/'
    b'vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    b'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
LARGE = replace(LIMITS, unpacked_bytes=200 * 1024**2)


@pytest.fixture
def readers():
    """Tell which children were started; other tests of this process left their own."""
    before = set(psutil.Process().children())
    return lambda: [each for each in psutil.Process().children() if each not in before]


def make_hostile_docx(paragraphs: int) -> bytes:
    """Make a small archive of ever the same paragraph."""
    return make_archive(
        **{
            "[Content_Types]_xml": _TYPES,
            "_rels__.rels": _RELATIONS,
            "word__document_xml": _WORD
            % (b"<w:p><w:r><w:t>A.</w:t></w:r></w:p>" * paragraphs),
        }
    )


@pytest.fixture
def run(tmp_path: Path):
    def run(content: bytes, file_format: str, limits=LIMITS, check=lambda: None):
        file = tmp_path / "file"
        file.write_bytes(content)
        with file.open("rb") as stream:
            return list(
                read_in_child(
                    stream, file_format, language="en", limits=limits, check=check
                )
            )

    return run


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"id,text\n7,A card costs 12 euros.\n8,\n"),
        ("a.tsv", b"id\ttext\tstate\n7\tA card costs 12 euros.\tdraft\n"),
        ("a.jsonl", b'{"title": "Fees", "text": "A card costs 12 euros."}\n{"text"\n'),
        ("a.md", "# Gebühren\n\nEine Karte kostet 12 €.\n".encode()),
        ("a.docx", make_docx()),
        ("a.xlsx", make_excel(Fees=[["text"], ["A card costs 12 euros."], [7]])),
        ("a.pdf", make_pdf("A card costs 12 euros.")),
    ],
)
def test_a_child_reads_what_would_be_read_here(run, name, content):
    file_format = {"md": "markdown"}.get(name[2:], name[2:])

    found = run(content, file_format)

    assert found == items(name, content)
    kinds = {Fact, BadRow, SourceDocument, UnreadColumns, Withdrawn}
    assert {type(each) for each in found} <= kinds


def test_a_file_that_can_not_be_read_says_the_same_from_a_child(run):
    with pytest.raises(ImportFileError, match="must name the columns"):
        run(b"price\n12\n", "csv")


def test_a_docx_of_millions_of_paragraphs_is_refused(run):
    content = make_hostile_docx(1_000_000)
    assert len(content) < 400_000

    with pytest.raises(
        ImportFileError, match="1,000,000 paragraphs and may have 100,0"
    ):
        run(content, "docx", LARGE)


def test_a_long_text_is_refused_by_its_paragraphs(tmp_path):
    file = tmp_path / "file"
    file.write_text("A card costs 12 euros.\n\n" * 30)

    with file.open("rb") as stream, pytest.raises(ImportFileError, match="PARAGRAPHS"):
        list(read(stream, "text", language="en", limits=replace(LIMITS, paragraphs=29)))


def test_what_needs_too_much_memory_ends_without_harm(run):
    small = replace(LARGE, memory_bytes=256 * 1024**2)

    with pytest.raises(ImportFileError, match=r"256 MiB of memory.*MAX_MEMORY_MIB"):
        run(make_hostile_docx(3_000_000), "docx", small)


def test_what_takes_too_long_ends(run):
    rows = b"".join(b"%d,\n" % number for number in range(2_000_000))

    with pytest.raises(ImportFileError, match="NESCIO_IMPORT_MAX_SECONDS"):
        run(b"id,text\n" + rows, "csv", replace(LARGE, seconds=0))


def test_cancelling_ends_the_child_in_the_middle_of_its_work(run, readers):
    seen: list[psutil.Process] = []

    def cancel() -> None:
        seen.extend(readers())
        raise JobCancelledError("cancelled")

    with pytest.raises(JobCancelledError):
        run(b"text\n" + b"\n" * 30_000_000, "csv", check=cancel)

    assert seen
    assert not any(process.is_running() for process in seen)


def test_closing_ends_the_child(tmp_path, readers):
    file = tmp_path / "file"
    file.write_text("text\n" + "A card costs 12 euros.\n" * 100_000)

    with file.open("rb") as stream:
        found = read_in_child(
            stream, "csv", language="en", limits=LIMITS, check=lambda: None
        )
        next(found)
        (child,) = readers()
        found.close()

    assert not child.is_running()


def test_the_child_knows_no_secret_of_ours(tmp_path, monkeypatch, readers):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    file = tmp_path / "file"
    file.write_text("text\n" + "A card costs 12 euros.\n" * 100_000)

    with file.open("rb") as stream:
        found = read_in_child(
            stream, "csv", language="en", limits=LIMITS, check=lambda: None
        )
        next(found)
        (child,) = readers()
        environment = child.environ()
        found.close()

    assert "DATABASE_URL" not in environment
