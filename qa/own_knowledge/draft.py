"""A short answer that the model wrote by itself, as the pipeline takes it."""

import time

from probes.language_model import Context, Generated
from qa.language_models.means import mean_of
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.pipeline.generation import Generation


def write_draft(form: OwnKnowledgeForm, context: Context) -> Generation:
    """Write the answer behind a prompt that `form` has opened.

    Raises:
        TooManyTokensError: It grew longer than the model's context.
    """
    began = time.perf_counter()
    written = form.write(context)
    return draft_of(
        written,
        prompt_tokens=len(context),
        milliseconds=(time.perf_counter() - began) * 1000,
    )


def draft_of(
    written: Generated, *, prompt_tokens: int, milliseconds: float
) -> Generation:
    """Return what was written as a draft that cites nothing."""
    text = written.text.strip()
    return Generation(
        cited=(),
        quotes=(),
        reasoning="",
        can_answer=bool(text),
        verdict_probability=None,
        answer=text,
        malformed=False,
        repaired=False,
        log_probability=mean_of(written.log_probabilities),
        raw=written.text,
        prompt_tokens=prompt_tokens,
        answer_tokens=len(written.ids),
        milliseconds=milliseconds,
        least_log_probability=min(written.log_probabilities, default=None),
        entropy=mean_of(written.entropies),
    )
