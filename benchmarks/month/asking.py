"""Asking the demonstration the month's questions, through the product's own service."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import numpy as np
from django.contrib.auth.models import User

from accounts.acting import acting_for
from kb.demonstration import load_demonstration
from kb.models import KnowledgeBase
from probes.services import register_shipped
from qa.answers.asking import ask
from qa.evaluation.knowledge import ensure_agent
from qa.models import Answer
from qa.policies.services import activate, ensure_default_policy, new_version

from .questions import MonthQuestion

AGENTS: Final = 12
DAYS: Final = 30
_SLUG: Final = "cards"


def prepared_knowledge_base(author: User) -> KnowledgeBase:
    """Return the demonstration's knowledge base, creating it on first use.

    Its policy keeps every gate in shadow: drafts that are not shown would get no
    feedback, and a new deployment measures before it enforces.
    """
    found = loaded_demonstration(author)
    policy = ensure_default_policy(found)
    if policy.hard_refusal or policy.soft_refusal or policy.support_check:
        version = new_version(
            policy,
            by=author,
            hard_refusal=False,
            soft_refusal=False,
            support_check=False,
        )
        activate(version, by=author)
    return found


def loaded_demonstration(author: User) -> KnowledgeBase:
    """Load the demonstration and the shipped probes, and return its knowledge base."""
    load_demonstration(author=author)
    register_shipped()
    return KnowledgeBase.objects.get(slug=_SLUG)


def agents() -> list[User]:
    """Return the agents who ask and vote, creating them on first use."""
    return [ensure_agent(f"month-agent-{number:02}", ()) for number in range(AGENTS)]


def asked(
    questions: Sequence[MonthQuestion],
    knowledge_base: KnowledgeBase,
    *,
    end: datetime,
    seed: int,
    on_progress: Callable[[int, int], None],
) -> Mapping[str, Answer]:
    """Ask the questions and return their answers, by the question's text.

    Questions that already have an answer are not asked again, so an interrupted run can
    continue. Each answer's time is drawn within the month.
    """
    draw = np.random.default_rng(seed)
    who = agents()
    rows = Answer.objects.filter(asker__in=who, knowledge_base=knowledge_base)
    found = {answer.question: answer for answer in rows}
    for done, question in enumerate(questions):
        asker, ago = who[int(draw.integers(len(who)))], float(draw.random()) * DAYS
        if question.text not in found:
            with acting_for(asker):
                answer = ask(
                    question.text,
                    asker=asker,
                    knowledge_base=knowledge_base,
                    channel=Answer.Channel.API,
                )
            answer.created_at = end - timedelta(days=ago)
            answer.save(update_fields=["created_at"])
            found[question.text] = answer
        on_progress(done + 1, len(questions))
    wanted = {question.text for question in questions}
    return {text: answer for text, answer in found.items() if text in wanted}
