"""Rewriting a follow-up as a standalone question by a language model."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kb.enrichment.forms import Form, Slot, Writer, read_reply, tidy
from qa.inference.configured import load_language_model
from qa.inference.evidence_text import PROMPTS
from qa.inference.server import ServerLanguageModel
from qa.inference.server_reply import Fault
from qa.inference.writers import WhiteBoxWriter

MAX_CHARACTERS: Final = 400
TIMEOUT_SECONDS: Final = 10.0
"""The asker of a follow-up waits this long at most before anything is searched."""

_FORM: Final = Form(
    name="follow_up",
    instructions=PROMPTS["follow_up"]["instructions"],
    given=(("earlier", "Earlier questions"), ("typed", "Follow-up")),
    slots=(
        Slot(
            "question", "Standalone question", "the standalone question", MAX_CHARACTERS
        ),
    ),
    examples=tuple(map(tuple, PROMPTS["follow_up"]["examples"])),
)


class Rewriter(Protocol):
    """Writes a standalone question; the caller checks that nothing is made up."""

    def rewrite(self, typed: str, earlier: Sequence[str]) -> str:
        """Return the standalone question; "" if the reply could not be read.

        Raises:
            UnavailableError: The model is currently unavailable.
        """


class ServerRewriter:
    """A rewriter on a chat-completions server, with JSON bound to a schema."""

    def __init__(self, server: ServerLanguageModel) -> None:
        self._server = server

    def rewrite(self, typed: str, earlier: Sequence[str]) -> str:
        filled = self._server.fill_in(
            f'{_FORM.instructions}\nReply with one JSON object with the field "question" '
            "and nothing else.",
            "\n".join(
                f"{label}: {_given(typed, earlier)[name]}"
                for name, label in _FORM.given
            ),
            schema=_FORM.schema(),
            read=lambda reply: (
                read_reply(_FORM, reply)
                or Fault("it is not a JSON object with question")
            ),
            timeout_seconds=TIMEOUT_SECONDS,
        )
        return str(filled.value["question"]) if filled.value else ""


class WhiteBoxRewriter:
    """A rewriter on a local model that follows instructions, writing one line."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def rewrite(self, typed: str, earlier: Sequence[str]) -> str:
        [filled] = self._writer.fill_in(
            _FORM, [_given(typed, earlier)], temperature=0.0, seed=0
        )
        return filled.text("question") if filled else ""


def _given(typed: str, earlier: Sequence[str]) -> Mapping[str, str]:
    return {"earlier": " / ".join(map(tidy, earlier)), "typed": tidy(typed)}


def load_rewriter() -> Rewriter | None:
    """Return the configured model's rewriter; None if it can't follow instructions."""
    model = load_language_model()
    if isinstance(model, ServerLanguageModel):
        return ServerRewriter(model)
    # Imports torch, which a process whose models are elsewhere does without.
    from qa.inference.instructed import InstructedLanguageModel  # noqa: PLC0415

    if isinstance(model, InstructedLanguageModel):
        return WhiteBoxRewriter(WhiteBoxWriter(model.model))
    return None
