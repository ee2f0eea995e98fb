"""A row of named values into a fact."""

from collections.abc import Mapping

from kb.exceptions import InvalidKnowledgeError
from kb.services.entry_values import clean_said
from kb.services.text import clean_line

from .values import BadRow, Fact

COLUMNS = ("id", "key", "question", "answer", "text")
"""What is read of a row; `key` is another name for `id`."""

_ID_LIMIT = 200


def fact_of(row: Mapping[str, str], place: str) -> Fact | BadRow:
    """Return the fact of a row, or what is wrong with the row.

    Args:
        row: By the names of `COLUMNS`; others are left aside.
    """
    question, answer = row.get("question", ""), row.get("answer", "")
    text = row.get("text", "")
    if answer.strip() and not question.strip():
        return BadRow(place, "It has an answer and no question.")
    if question.strip() and not answer.strip():
        return BadRow(place, "It has a question and no answer.")
    try:
        return Fact(
            text=clean_said("text", answer if question.strip() else text),
            place=place,
            question=clean_said("question", question),
            id=clean_line(
                row.get("id") or row.get("key") or "",
                field="id",
                limit=_ID_LIMIT,
                required=False,
            ),
        )
    except InvalidKnowledgeError as error:
        return BadRow(place, str(error))
