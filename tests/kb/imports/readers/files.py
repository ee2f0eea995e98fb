"""Small real files of every format, and reading them."""

import io
import zipfile

import docx
import openpyxl
from pypdf import PdfWriter
from pypdf.generic import (
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
)

from kb.imports.readers import (
    BadRow,
    Fact,
    FileItem,
    Limits,
    SourceDocument,
    detect_format,
    read,
)

LIMITS = Limits(file_bytes=1_000_000, unpacked_bytes=2_000_000)


def items(name: str, content: bytes, limits: Limits = LIMITS) -> list[FileItem]:
    """Read a whole file."""
    stream = io.BytesIO(content)
    found = detect_format(name, stream, limits)
    return list(read(stream, found, language="en", limits=limits))


def facts(name: str, content: bytes | str) -> list[Fact]:
    """Read a file in which nothing is bad."""
    raw = content.encode() if isinstance(content, str) else content
    found: list[Fact] = []
    for item in items(name, raw):
        assert not isinstance(item, BadRow), item
        if isinstance(item, SourceDocument):
            found += item.facts
        elif isinstance(item, Fact):
            found.append(item)
    return found


def document(name: str, content: bytes | str) -> SourceDocument:
    """Read a file that is one document."""
    raw = content.encode() if isinstance(content, str) else content
    (item,) = items(name, raw)
    assert isinstance(item, SourceDocument)
    return item


def make_docx() -> bytes:
    """Make a Word document with headings, a list and a table."""
    word = docx.Document()
    word.core_properties.title = "Cards"
    word.add_heading("Fees", level=1)
    word.add_paragraph("A replacement card costs 12 euros. A PIN letter costs 5 euros.")
    word.add_heading("Abroad", level=2)
    word.add_paragraph("You need:")
    word.add_paragraph("a passport", style="List Bullet")
    word.add_paragraph("a photo", style="List Bullet")
    table = word.add_table(rows=2, cols=2)
    for cell, text in zip(
        [*table.rows[0].cells, *table.rows[1].cells],
        ["Card", "Fee", "Gold", "72"],
        strict=True,
    ):
        cell.text = text
    out = io.BytesIO()
    word.save(out)
    return out.getvalue()


def make_merged_docx(rows: int) -> bytes:
    """Return a document with a table of one cell, merged over all its rows."""
    out = io.BytesIO()
    word = docx.Document()
    table = word.add_table(rows=rows, cols=1)
    for number, cell in enumerate(table._tbl.iter_tcs()):
        cell.vMerge = "continue" if number else "restart"
    word.save(out)
    return out.getvalue()


def make_excel(**sheets: list[list[object]]) -> bytes:
    """Make a workbook of sheets by their names."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def make_pdf(*pages: str) -> bytes:
    """Make a PDF with a line of text a page and an outline that names each page."""
    writer = PdfWriter()
    font = writer._add_object(
        DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
    )
    for number, text in enumerate(pages):
        page = writer.add_blank_page(width=600, height=800)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode())
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        page[NameObject("/Contents")] = writer._add_object(content.flate_encode())
        writer.add_outline_item(title=f"Chapter {number + 1}", page_number=number)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def make_archive(**members: bytes) -> bytes:
    """Make an archive as a DOCX is one; its members' names with / for __."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return out.getvalue()
