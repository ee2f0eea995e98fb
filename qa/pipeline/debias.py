"""Stage: the verdict without the model's leaning, where the policy wants that."""

from dataclasses import replace

from .evidence import Retrieval
from .generate import prompt_of
from .generation import Generation
from .history import VerdictDebiaser
from .outcome import Question


def debias(
    question: Question,
    retrieval: Retrieval,
    generation: Generation,
    *,
    debiaser: VerdictDebiaser,
    language_model: str,
) -> Generation:
    """Return the generation with the verdict that soft refusal is to go by.

    Raises:
        LanguageModelUnavailableError: The model that tells it is down.
    """
    prompt = prompt_of(question, retrieval)
    verdict = debiaser.debias(prompt, generation, language_model=language_model)
    return replace(generation, debiased=verdict)
