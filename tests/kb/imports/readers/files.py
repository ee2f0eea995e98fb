"""Small real files of every format, and reading them."""

import io
import zipfile
import zlib
from collections.abc import Sequence

import docx
import openpyxl

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


def items(
    name: str, content: bytes, limits: Limits = LIMITS, language: str = "en"
) -> list[FileItem]:
    """Read a whole file."""
    stream = io.BytesIO(content)
    found = detect_format(name, stream, limits)
    return list(read(stream, found, language=language, limits=limits))


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


def make_excel(**sheets: Sequence[Sequence[object]]) -> bytes:
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


def make_pdf(*pages: str, bookmarks: bool = True) -> bytes:
    """Make a PDF of pages that are a line each, or what `text_at` and `rules` return.

    It has a bookmark for each page.
    """
    kids = [f"{6 + 3 * at} 0 R" for at in range(len(pages))]
    titles = [f"{8 + 3 * at} 0 R" for at in range(len(pages))]
    outline = f"/First {titles[0]} /Last {titles[-1]}" if bookmarks else ""
    fonts = "/F1 4 0 R /F2 5 0 R"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Outlines 3 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>",
        f"<< /Type /Outlines {outline} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
    ]
    for at, page in enumerate(pages):
        raw = page if "Tj" in page else text_at(50, 700, page, size=12)
        packed = zlib.compress(raw.encode("latin-1"))
        following = f"/Next {titles[at + 1]}" if at + 1 < len(pages) else ""
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
            f"/Resources << /Font << {fonts} >> >> /Contents {7 + 3 * at} 0 R >>",
            f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n"
            f"{packed.decode('latin-1')}\nendstream",
            f"<< /Title (Chapter {at + 1}) /Dest [{kids[at]} /Fit] {following} >>",
        ]
    out = "%PDF-1.7\n"
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    return (
        f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n"
        f"startxref\n{len(out)}\n%%EOF\n"
    ).encode("latin-1")


def text_at(
    x: float, y: float, *lines: str, size: float = 11, bold: bool = False
) -> str:
    """Return what writes lines from a place on, in points from the left and below."""
    font = "F2" if bold else "F1"
    return "".join(
        f"BT /{font} {size} Tf {x} {y - 1.2 * size * at} Td ({line}) Tj ET\n"
        for at, line in enumerate(lines)
    )


def rules(lefts: Sequence[float], heights: Sequence[float]) -> str:
    """Return what draws the rules of a table at these places."""
    across = (f"{lefts[0]} {y} m {lefts[-1]} {y} l S\n" for y in heights)
    down = (f"{x} {heights[0]} m {x} {heights[-1]} l S\n" for x in lefts)
    return "".join((*across, *down))


def make_archive(**members: bytes) -> bytes:
    """Make an archive as a DOCX is one; its members' names with / for __."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return out.getvalue()
