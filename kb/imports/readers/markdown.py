"""Markdown by the CommonMark rules, with tables."""

import re
from collections.abc import Iterator, Sequence
from typing import IO

from markdown_it import MarkdownIt
from markdown_it.token import Token

from .blocks import Block, Kind, bullet, headed, table_row
from .documents import as_document
from .formats import SourceDocument
from .plain_text import open_text

_FRONT_MATTER = re.compile(r"\A---\r?\n.*?\r?\n---\r?\n", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LISTS = ("bullet_list_open", "ordered_list_open")


def read_markdown(stream: IO[bytes], language: str) -> SourceDocument:
    """Read Markdown, leaving out front matter and embedded HTML."""
    with open_text(stream, language) as opened:
        text = opened.read()
    front = _FRONT_MATTER.match(text)
    skipped = text[: front.end()].count("\n") if front else 0
    tokens = (
        MarkdownIt("commonmark")
        .enable("table")
        .parse(text[front.end() :] if front else text)
    )
    return as_document(_blocks(tokens, skipped), language=language)


def _blocks(tokens: Sequence[Token], skipped: int) -> Iterator[Block]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        place = f"line {token.map[0] + 1 + skipped}" if token.map else ""
        end = at
        if token.type == "heading_open":
            end = _end(tokens, at)
            text = _plain(tokens[at:end])
            yield Block(Kind.HEADING, (" ".join(text),), place, int(token.tag[1]))
        elif token.type == "paragraph_open":
            end = _end(tokens, at)
            yield Block(Kind.PARAGRAPH, tuple(_plain(tokens[at:end])), place)
        elif token.type in _LISTS:
            end = _end(tokens, at)
            yield Block(Kind.LIST, tuple(_items(tokens[at : end + 1])), place)
        elif token.type == "table_open":
            end = _end(tokens, at)
            yield Block(Kind.TABLE, headed([*_rows(tokens[at:end])]), place)
        elif token.type in ("fence", "code_block"):
            yield Block(Kind.CODE, tuple(token.content.rstrip().splitlines()), place)
        at = end + 1


def _end(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += tokens[index].nesting
        if depth == 0:
            return index
    return len(tokens) - 1


def _plain(tokens: Sequence[Token]) -> list[str]:
    words = "".join(
        _inline(child)
        for token in tokens
        if token.type == "inline"
        for child in token.children or ()
    )
    return [line.strip() for line in words.splitlines() if line.strip()]


def _inline(token: Token) -> str:
    is_break = token.type == "html_inline" and _LINE_BREAK.fullmatch(token.content)
    if is_break or token.type in ("softbreak", "hardbreak"):
        return "\n"
    return token.content if token.type in ("text", "code_inline", "image") else ""


def _items(tokens: Sequence[Token]) -> Iterator[str]:
    item: list[str] = []
    number: int | None = None
    numbers: list[int | None] = []  # of the next item, by depth
    for token in tokens:
        is_end = token.type.endswith("_list_close")
        if token.type == "list_item_open" or is_end or token.type.endswith("list_open"):
            if item:
                yield "  " * (len(numbers) - 1) + bullet(" ".join(item), number)
            item, number = [], None
        if token.type == "list_item_open":
            number = numbers[-1]
            numbers[-1] = None if number is None else number + 1
        elif token.type.endswith("list_open"):
            is_counted = token.type == "ordered_list_open"
            numbers.append(int(token.attrGet("start") or 1) if is_counted else None)
        elif is_end:
            numbers.pop()
        elif token.type == "inline":
            item += _plain([token])
        elif token.type in ("fence", "code_block"):
            item.append(token.content)


def _rows(tokens: Sequence[Token]) -> Iterator[str]:
    cells: list[str] = []
    for token in tokens:
        if token.type == "inline":
            cells.append(" ".join(_plain([token])))
        elif token.type == "tr_close":
            yield table_row(cells)
            cells = []
