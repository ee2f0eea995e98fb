"""Stage 5: a language model answers from the evidence alone."""

from .types import Generation, LanguageModel, Prompt, Question, Retrieval


def generate(
    question: Question, retrieval: Retrieval, *, language_model: LanguageModel
) -> Generation:
    """Let the model read the question and its evidence and nothing else.

    Raises:
        LanguageModelUnavailableError: The model's server is down or too slow.
    """
    prompt = Prompt(question.text, retrieval.evidence, question.language)
    return language_model.generate(prompt)
