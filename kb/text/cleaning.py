"""What people write, made safe to keep: NFC, trimmed, bounded, no control characters."""

import re
import unicodedata

from kb.exceptions import InvalidKnowledgeError

# C0 and C1 control characters but tab and line feed, and halves of surrogate pairs:
# PostgreSQL refuses the first and the last of them, prompts and pages should.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_text(value: str, *, field: str, limit: int, required: bool = True) -> str:
    """Return `value` in Unicode NFC, trimmed, with line ends as line feeds.

    Args:
        field: Its name, for the error.
        limit: Most characters it may have.
        required: Whether it may not be empty.

    Raises:
        InvalidKnowledgeError: It is empty, too long or holds what is no text.
    """
    # Bounded first: what follows costs time in proportion to the length.
    if len(value) > 4 * limit:
        raise _too_long(field, len(value), limit)
    cleaned = re.sub(r"\r\n?", "\n", value)
    found = _UNPRINTABLE.search(cleaned)
    if found:
        raise InvalidKnowledgeError(
            field,
            f"{field} holds U+{ord(found[0]):04X} at position {found.start()}, "
            "which is no text; take it out.",
        )
    cleaned = unicodedata.normalize("NFC", cleaned).strip()
    # Spaces of no width are no text either.
    if required and not any(c.isprintable() and not c.isspace() for c in cleaned):
        raise InvalidKnowledgeError(field, f"{field} is empty; write something.")
    if len(cleaned) > limit:
        raise _too_long(field, len(cleaned), limit)
    return cleaned


def clean_line(value: str, *, field: str, limit: int, required: bool = True) -> str:
    """Like `clean_text`, for a single line.

    Raises:
        InvalidKnowledgeError: Also when it holds a line break.
    """
    cleaned = clean_text(value, field=field, limit=limit, required=required)
    if "\n" in cleaned:
        raise InvalidKnowledgeError(
            field, f"{field} has more than one line; write it on one."
        )
    return cleaned


def _too_long(field: str, length: int, limit: int) -> InvalidKnowledgeError:
    return InvalidKnowledgeError(
        field, f"{field} has {length} characters and may have {limit}; shorten it."
    )
