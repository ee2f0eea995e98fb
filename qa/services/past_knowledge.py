"""Finding out which past questions the language model answers rightly by itself.

What a review says of an answer from evidence says nothing of what the model knows without
it. So the model is asked again without any evidence, and what it says is held against what
the reviews hold to be right: the answer that was right, the ideal one, or the entry that
was made of it. An answer that rested on the model's own knowledge was judged itself.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Prefetch

from jobs.run import JobRun
from qa.evaluation.metrics.text import contains_gold, normalised
from qa.models import Answer, PastQuestion, Policy, Review
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.timely import asks_about_now
from qa.training.stored_answers import text_of

if TYPE_CHECKING:
    from qa.language_models.own_knowledge import OwnKnowledgeForm

# Written side by side, in some seconds.
_AT_ONCE: Final = 32
# Beyond so many words a right text is a sentence, and an answer stands in it.
_SHORT_WORDS: Final = 6


def find_out_what_is_known(run: JobRun) -> int:
    """Label past questions by what the model knows itself; return how many were asked.

    Only where a policy decides by past questions and the model is no server's, and only
    those that this form of the model was not asked yet: what is done stays done if the
    run is killed.

    Raises:
        ModelLoadError: The model is not there or cannot be read.
    """
    by_history = Policy.objects.filter(
        is_active=True, retrieval_timing=RetrievalTiming.HISTORY
    )
    wanted = PastQuestion.objects.filter(
        knowledge_base__in=by_history.values("knowledge_base")
    )
    if settings.LANGUAGE_SERVER_URL or not wanted.exists():
        return 0
    # Pulls in torch, which a worker without such a policy never pays for.
    from qa.own_knowledge.selection import own_form  # noqa: PLC0415

    form, asked = own_form(), 0
    rows = wanted.unasked_of(form.fingerprint).select_related("answer")
    rows = rows.prefetch_related(
        Prefetch("answer__reviews", Review.objects.done().select_related("entry"))
    ).order_by("pk")
    while batch := [*rows[:_AT_ONCE]]:
        _label(batch, form)
        asked += len(batch)
        with run.step() as step:
            PastQuestion.objects.bulk_update(batch, ["is_known", "own_model"])
            step.advance(done=run.done + len(batch))
    return asked


def answers_rightly(said: str, references: Iterable[str], *, question: str) -> bool:
    """Tell whether a short answer says what a right text says.

    A short right text stands in the answer. A longer one holds every word of the answer
    that the question has not, of which there is one at least.
    """
    texts = [normalised(text) for text in references]
    short = [text for text in texts if len(text.split()) <= _SHORT_WORDS]
    if contains_gold(said, short):
        return True
    new = set(normalised(said).split()) - set(normalised(question).split())
    long = (set(text.split()) for text in texts if text not in short)
    return bool(new) and any(new <= words for words in long)


def _label(rows: Sequence[PastQuestion], form: "OwnKnowledgeForm") -> None:
    """Set on each row whether the model knows, or that nothing tells."""
    open_rows = []
    for row in rows:
        answer = row.answer
        row.own_model, row.is_known = form.fingerprint, None
        if asks_about_now(answer.question, answer.language):
            row.is_known = False  # whatever is said of it
        elif answer.is_unsourced or _references_of(row):
            open_rows.append(row)
    said = form.write_each([row.answer.question for row in open_rows])
    for row, text in zip(open_rows, said, strict=True):
        row.is_known = _knows(row, text)


def _knows(row: PastQuestion, said: str) -> bool | None:
    """Tell whether the model by itself is right now; None where nothing tells.

    What experts said of an unsourced answer holds for the same words alone: another
    model may have written it, or this one with evidence.
    """
    answer = row.answer
    written = text_of(answer) or answer.text
    if answer.is_unsourced and normalised(said) == normalised(written):
        return row.can_be_answered
    references = _references_of(row)
    if not references:
        return None
    return answers_rightly(said, references, question=answer.question)


def _references_of(row: PastQuestion) -> list[str]:
    answer, texts = row.answer, []
    if answer.outcome == Answer.Outcome.ANSWERED and row.can_be_answered:
        texts.append(text_of(answer) or answer.text)
    for review in answer.reviews.all():
        texts.append(review.ideal_answer)
        if review.entry:
            texts.append(review.entry.text)
    return [text for text in texts if normalised(text)]
