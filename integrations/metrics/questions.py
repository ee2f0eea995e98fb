"""What is counted of questions, from each answer as it was stored."""

from django.dispatch import receiver
from prometheus_client import Counter, Histogram

from qa.answers.models import Answer
from qa.answers.recording import answer_stored

_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
)  # fmt: skip

QUESTIONS = Counter(
    "nescio_questions",
    "Questions answered, refused or failed; the reason is the true one.",
    ["knowledge_base", "channel", "outcome", "gate", "reason"],
)
STAGE_SECONDS = Histogram(
    "nescio_stage_seconds",
    "Time of each stage of a decided question.",
    ["stage"],
    buckets=_SECONDS,
)
MODEL_SECONDS = Histogram(
    "nescio_language_model_seconds",
    "Time of the language model for a question that it was called for.",
    buckets=_SECONDS,
)
MODEL_TOKENS = Counter(
    "nescio_language_model_tokens", "Tokens of the language model.", ["direction"]
)


@receiver(answer_stored)
def count(sender: type[Answer], answer: Answer, **_: object) -> None:
    QUESTIONS.labels(
        answer.knowledge_base.slug,
        answer.channel,
        answer.outcome,
        answer.gate,
        answer.reason,
    ).inc()
    if answer.outcome == Answer.Outcome.FAILED:
        return
    for stage, milliseconds in answer.milliseconds.items():
        STAGE_SECONDS.labels(stage).observe(milliseconds / 1000)
    if written := answer.generation:
        MODEL_SECONDS.observe(written["milliseconds"] / 1000)
        MODEL_TOKENS.labels("read").inc(written["prompt_tokens"])
        MODEL_TOKENS.labels("written").inc(written["answer_tokens"])
