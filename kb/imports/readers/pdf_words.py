"""Words of a PDF that are split at the end of a line."""

import re
from collections.abc import Collection, Iterable, Sequence

from .pdf_parts import Line, Part

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
HYPHEN = re.compile(r"(?<=\w)[-\u00ad\u2010]$")
_BESIDE_HYPHENS = {"and", "or", "und", "oder", "bzw", "sowie"}


def joined(lines: Iterable[str], known: Collection[str]) -> str:
    """Join lines, and the words that were hyphenated between them."""
    text = ""
    for line in lines:
        if not (text and HYPHEN.search(text)):
            text = f"{text} {line}" if text else line
            continue
        (*_, begin), end = (_WORD.findall(text) or [""]), (_WORD.match(line) or [""])[0]
        parts = begin.lower(), end.lower()
        if end in _BESIDE_HYPHENS:
            text = f"{text} {line}"
        elif text[-1] != "\u00ad" and (
            not end[:1].islower()
            or "-".join(parts) in known
            or ("".join(parts) not in known and all(part in known for part in parts))
        ):
            text += line
        else:
            text = text[:-1] + line
    return text


def words_of(pages: Sequence[Sequence[Part]]) -> frozenset[str]:
    """Return the words of a document, without the halves of hyphenated ones."""
    found: set[str] = set()
    is_cut = False
    for part in (part for page in pages for part in page):
        said = (
            [part.text]
            if isinstance(part, Line)
            else "\n".join(map("\n".join, part.rows)).split("\n")
        )
        for line in said:
            words = _WORD.findall(line.lower())
            was_cut, is_cut = is_cut, bool(HYPHEN.search(line))
            found.update(words[int(was_cut) : len(words) - int(is_cut)])
    return frozenset(found)
