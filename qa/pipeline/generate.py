"""Stage 5: a language model answers from the evidence alone."""

from dataclasses import replace

from .history import VerdictDebiaser
from .language_model import Generation, LanguageModel, Probes, Prompt
from .policy import Policy
from .values import Question, Retrieval


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
    """
    capture = probes.capture(least_early=policy.least_early)
    return language_model.generate(prompt_of(question, retrieval), capture)


def prompt_of(question: Question, retrieval: Retrieval) -> Prompt:
    """Return what the model reads."""
    return Prompt(question.text, retrieval.evidence, question.language)


# Stage: the verdict without the model's leaning, where the policy wants that.


def debias(
    question: Question,
    retrieval: Retrieval,
    generation: Generation,
    *,
    debiaser: VerdictDebiaser,
    language_model: str,
) -> Generation:
    """Return the generation with the verdict that soft refusal is to go by."""
    prompt = prompt_of(question, retrieval)
    verdict = debiaser.debias(prompt, generation, language_model=language_model)
    return replace(generation, debiased=verdict)
