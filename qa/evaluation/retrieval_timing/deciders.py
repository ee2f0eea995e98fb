"""Whoever decides when to retrieve, each with all it needs to decide here."""

from dataclasses import dataclass

from probes.language_model import Context
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.draft import write_draft
from qa.pipeline.generation import Generation
from qa.pipeline.outcome import Question


@dataclass(frozen=True, slots=True, eq=False)
class JustRead:
    """`qa.pipeline.own_knowledge.Considered` by nobody: what answering takes by itself."""

    form: OwnKnowledgeForm
    context: Context
    sureness: float | None = None
    signals: tuple[tuple[str, float | None], ...] = ()
    examples: tuple[str, ...] = ()

    def answer(self) -> Generation:
        """Write the answer.

        Raises:
            TooManyTokensError: It grew longer than the model's context.
        """
        return write_draft(self.form, self.context)


class Undecided:
    """`qa.pipeline.own_knowledge.OwnKnowledge` that tells nothing and just answers."""

    def __init__(self, form: OwnKnowledgeForm) -> None:
        """Take over the form that questions are asked in."""
        self._form = form

    @property
    def fingerprint(self) -> str:
        """The form's."""
        return self._form.fingerprint

    def consider(self, question: Question) -> JustRead:
        """Read the question.

        Raises:
            TooManyTokensError: It does not fit the model's context.
        """
        asked = self._form.prompt_ids(question.text)
        context = self._form.model.read(asked, self._form.prefix())
        return JustRead(self._form, context)
