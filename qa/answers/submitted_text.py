"""Texts that people send along: trimmed, bounded, and such as the database keeps."""

from accounts.exceptions import NescioError


def checked_text(name: str, text: str, limit: int, error: type[NescioError]) -> str:
    """Return `text` trimmed.

    Args:
        name: What it is called in messages.
        limit: The most characters.
        error: What is raised.

    Raises:
        NescioError: As `error`: it is too long, or holds what is no text.
    """
    text = text.strip()
    if len(text) > limit:
        raise error(
            f"The {name} has {len(text)} characters and may have {limit}; shorten it."
        )
    if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise error(f"The {name} holds a NUL or half a surrogate pair; take it out.")
    return text
