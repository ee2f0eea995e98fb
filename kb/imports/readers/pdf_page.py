"""A page of a PDF: its lines and ruled tables, by the positions of letters and rules.

A PDF stores letters at positions, but no lines or tables. They come in the order in
which the program wrote them, which is nearly always the reading order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pdfplumber.page import Page

from .pdf_parts import Line, Part, Table
from .pdf_tables import Box, cell_of, grids_of, ruled

_BOLD = re.compile(r"bold|black|heavy|demi|medi$|cmbx", re.IGNORECASE)
# Marks that begin an item or a heading and may be set apart from its words.
_BULLET = re.compile(r"[*\-\u2013•◦▪·●○■□‣➢o]|\(cid:\d+\)|[\ue000-\uf8ff]")
_NUMBER = re.compile(
    r"\d{1,3}[.)]|[a-z][.)]|\((?:[a-z]|[ivx]{1,5}|\d{1,2})\)|\d{1,2}(?:\.\d{1,2})+\.?"
)
_QUOTE = "\"'\u00ab\u2018\u201c\u201e"  # opening quotes
_MAX_DOT_SIZE = 6.0  # points
_MAX_DOTS = 1_000  # on a page; a drawing has more
_WIDEST_BLANK = 0.65  # between words of a line, in line heights


def read_page(page: Page) -> list[Part]:
    """Return the parts of a page, in the order in which they were written."""
    page = _turned(page)
    words = list(_words(page))
    grids = grids_of(page)
    inside: dict[int, dict[Box, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, word in enumerate(words):
        if found := cell_of(word, grids):
            inside[found[0]][found[1]].append(at)
    tables: dict[int, Table] = {}
    taken: set[int] = set()
    for number, cells in inside.items():
        said = {
            cell: list(_lines_of(words[at] for at in within))
            for cell, within in cells.items()
        }
        if table := ruled(grids[number], said):
            its = [at for within in cells.values() for at in within]
            tables[min(its)] = table
            taken.update(its)
    parts: list[Part] = []
    loose: list[Line] = []
    for at, word in enumerate(words):
        if at in tables:
            parts += [*_lines_of(loose), tables[at]]
            loose = []
        if at not in taken:
            loose.append(word)
    parts += _lines_of(loose)
    dots = [
        dot
        for dot in (*page.curves, *page.rects)
        if 0 < dot["width"] < _MAX_DOT_SIZE and 0 < dot["height"] < _MAX_DOT_SIZE
    ]
    if not 0 < len(dots) <= _MAX_DOTS:
        return parts
    return [_with_dot(part, dots) if isinstance(part, Line) else part for part in parts]


def _with_dot(line: Line, dots: Sequence[Mapping[str, Any]]) -> Line:
    """Return a line with the bullet that was drawn, not written, before it."""
    for dot in dots:
        is_before = 0 < line.x0 - dot["x1"] < 2 * line.height
        if is_before and line.top < (dot["top"] + dot["bottom"]) / 2 < line.bottom:
            return replace(line, text=f"• {line.text}", x0=float(dot["x0"]))
    return line


def _turned(page: Page) -> Page:
    """Return a page turned so that most of its text is upright."""
    turns = Counter(_turn(char) for char in page.chars)
    turn = turns.most_common(1)[0][0] if turns else 0
    if not turn:
        return page
    page.close()
    page.page_obj.rotate = (page.page_obj.rotate + turn) % 360
    return Page(page.pdf, page.page_obj, page.page_number, page.initial_doctop)


def _turn(char: Mapping[str, Any]) -> int:
    right, up = char["matrix"][:2]
    if abs(right) >= abs(up):
        return 0 if right > 0 else 180
    return 90 if up > 0 else 270


def _words(page: Page) -> Iterator[Line]:
    seen: set[tuple[str, int, int]] = set()
    turns = Counter(_turn(char) for char in page.chars)
    for word in page.extract_words(
        x_tolerance_ratio=0.15,
        use_text_flow=True,
        return_chars=True,
        char_dir_rotated="btt" if turns[90] > turns[270] else "ttb",
    ):
        text = word["text"].strip()
        # Some programs write a word twice to make it bold.
        place = (text, round(word["x0"]), round(word["top"]))
        if not text or place in seen:
            continue
        seen.add(place)
        letters = word["chars"]
        size = float(letters[0]["size"]) if word["upright"] else 0.0
        top, bottom = float(word["top"]), float(word["bottom"])
        if size:
            # Fonts differ in height; words on one line share its baseline.
            base = letters[0]["bottom"] + letters[0]["y0"] - letters[0]["matrix"][5]
            top, bottom = base - 0.8 * size, base + 0.2 * size
        yield Line(
            text,
            float(word["x0"]),
            float(word["x1"]),
            top,
            bottom,
            size,
            bold=all(_BOLD.search(each["fontname"]) for each in letters),
        )


def _lines_of(words: Iterable[Line]) -> Iterator[Line]:
    """Join words that follow each other on a line."""
    line: list[Line] = []
    for word in words:
        if line and not _follows(line, word):
            yield _line(line)
            line = []
        line.append(word)
    if line:
        yield _line(line)


def _follows(line: Sequence[Line], word: Line) -> bool:
    last = line[-1]
    if not last.is_beside(word) or (last.size == 0) != (word.size == 0):
        return False
    height = max(last.height, word.height)
    blank = word.x0 - last.x1
    widest = _WIDEST_BLANK * height
    if len(line) == 1 and (
        _BULLET.fullmatch(last.text)
        or (_NUMBER.fullmatch(last.text) and word.text.lstrip(_QUOTE)[:1].isalpha())
    ):
        widest = 4 * height
    return -0.3 * height < blank < widest


def _line(words: Sequence[Line]) -> Line:
    texts = [word.text for word in words]
    if len(words) > 1 and _BULLET.fullmatch(texts[0]):
        texts[0] = "•"
    widest = max(words, key=lambda word: len(word.text))
    return replace(
        widest,
        text=" ".join(texts),
        x0=words[0].x0,
        x1=words[-1].x1,
        top=min(word.top for word in words),
        bottom=max(word.bottom for word in words),
        bold=all(word.bold or not word.text[0].isalnum() for word in words)
        and widest.bold,
    )
