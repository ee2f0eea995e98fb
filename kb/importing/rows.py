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

    Where there is no answer, the text beside a question is its answer.

    Args:
        row: By the names of `COLUMNS`; others are left aside.
    """
    question, text = row.get("question", ""), row.get("text", "")
    answer = row.get("answer", "")
    if answer.strip() and not question.strip():
        return BadRow(place, "It has an answer and no question.")
    said = answer if answer.strip() else text
    if question.strip() and not said.strip():
        return BadRow(place, "It has a question and no answer.")
    try:
        return Fact(
            text=clean_said("text", said),
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
