"""From what a model wrote to values that may be used; what can't be read is nothing."""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import jsonschema

from .forms import QUESTIONS, Form

_LONGEST_REPLY = 20_000
# Control and format characters, halves of surrogate pairs, private use, unassigned.
_NO_TEXT = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
# A model that has run away says the same over and over.
_RUNAWAY = re.compile(r"(.{1,40}?)\1{7,}")


def read_reply(form: Form, reply: str) -> dict[str, str | float] | None:
    """Return the values of a JSON object that fills the form in; never raises.

    None unless the whole reply is one object that keeps to the form's schema.
    """
    if len(reply) > _LONGEST_REPLY:
        return None
    try:
        found = json.loads(reply, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return read_values(form, found) if isinstance(found, dict) else None


def read_values(
    form: Form, values: Mapping[str, object]
) -> dict[str, str | float] | None:
    """Return values that keep to the form's schema, texts tidied; None for others."""
    tidied = {
        name: tidy(value) if isinstance(value, str) else value
        for name, value in values.items()
    }
    if not _validator(form).is_valid(tidied):
        return None
    read: dict[str, str | float] = {}
    for slot in form.wanted:
        value = tidied[slot.name]
        if isinstance(value, str):
            if _RUNAWAY.search(value) or not any(c.isalnum() for c in value):
                return None
            read[slot.name] = value
        elif isinstance(value, (int, float)):
            read[slot.name] = float(value)
    if form is QUESTIONS and not str(read["question"]).endswith(("?", "\uff1f")):
        return None
    return read


def tidy(text: str) -> str:
    """Return a text on one line, in NFC, without what is no text."""
    shown = "".join(
        " " if c.isspace() else c
        for c in text
        if c.isspace() or unicodedata.category(c) not in _NO_TEXT
    )
    return " ".join(unicodedata.normalize("NFC", shown).split())


@lru_cache(maxsize=16)
def _validator(form: Form) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(dict(form.schema()))


def _refuse(name: str) -> object:
    raise ValueError(name)
