"""Stage 5: a language model answers from the evidence alone."""

from .evidence import Retrieval
from .generation import Generation, LanguageModel, Prompt
from .outcome import Question
from .policy import Policy
from .probes import Probes


def generate(
    question: Question,
    retrieval: Retrieval,
    *,
    language_model: LanguageModel,
    probes: Probes,
    policy: Policy,
) -> Generation:
    """Let the model read the question and its evidence and nothing else.

    What the probes need of its insides is kept on the way. Where the policy enforces a
    least early confidence, the answer may end before it begins.

    Raises:
        LanguageModelUnavailableError: The model's server is down or too slow.
    """
    capture = probes.capture(least_early=policy.least_early)
    return language_model.generate(prompt_of(question, retrieval), capture)


def prompt_of(question: Question, retrieval: Retrieval) -> Prompt:
    """Return what the model reads."""
    return Prompt(question.text, retrieval.evidence, question.language)
