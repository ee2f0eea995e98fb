"""Loading the models that a question turns out to need, one by one.

Each pulls in torch, which takes 400 MiB and seconds: a process that only refuses never
pays for it. None is loaded, nor waited for, while a connection of the database is held.
"""

from functools import partial

from django.db import connection

from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.history import History, VerdictDebiaser
from qa.pipeline.language_model import LanguageModel
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.retrieve import Reranker
from qa.pipeline.self_knowledge import SelfKnowledge


def release_connection() -> None:
    """Give this thread's database connection back to the pool until it is needed again.

    A language model may take a minute; whoever waits for it keeps no connection from
    those who are refused in milliseconds.
    """
    if not connection.in_atomic_block:
        connection.close()


def configured_model() -> LanguageModel:
    """Return the language model that answers from evidence."""
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    return load_language_model()


def closed_book_models_for(
    timing: RetrievalTiming, history: History
) -> ClosedBookModels:
    """Return what loads the model that is asked by itself.

    Args:
        history: The past questions that the asker may be judged by.
    """
    return ClosedBookModels(partial(_own_knowledge, timing, history), _segment_writer)


def configured_reranker() -> Reranker | None:
    """Return the reranker that the settings name; None if it is another model's."""
    from qa.inference import policy_models  # noqa: PLC0415

    release_connection()
    return policy_models.configured_reranker()


def verdict_debiaser(history: History) -> VerdictDebiaser:
    """Return what corrects the model's verdicts by past ones."""
    from qa.inference import policy_models  # noqa: PLC0415

    release_connection()
    return policy_models.verdict_debiaser(history)


def _own_knowledge(timing: RetrievalTiming, history: History) -> SelfKnowledge:
    from qa.inference.policy_models import self_knowledge_by  # noqa: PLC0415

    release_connection()
    own = self_knowledge_by(timing, history=history)
    release_connection()  # the model reads next
    return own


def _segment_writer() -> SegmentWriter:
    from qa.inference.monitored_writer import monitored_writer  # noqa: PLC0415

    release_connection()
    writer = monitored_writer()
    release_connection()
    return writer
