"""Loads the models when the web server starts, so that nobody's first question waits.

In a thread: pages, lists and health answer meanwhile. A question that comes earlier
waits for the same loading instead of beginning another.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from accounts.exceptions import NescioError
from kb.embedder import embedder_of
from kb.embedding import active_model
from qa.models import Policy
from qa.pipeline.policy import RetrievalTiming

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0


class State(StrEnum):
    """How far a model is."""

    ON_DEMAND = "loads with the first question"
    LOADING = "loading"
    LOADED = "loaded"
    FAILED = "failed"


_states = {"embedder": State.ON_DEMAND, "language_model": State.ON_DEMAND}


def states() -> Mapping[str, State]:
    """Return how far each model of this process is."""
    return dict(_states)


def begin() -> None:
    """Load what answers questions, in the background."""
    for name in _states:
        _states[name] = State.LOADING
    threading.Thread(target=_load_all, name="warm-up", daemon=True).start()


def _load_all() -> None:
    # What a command that only wants the states should not pay for.
    from qa.language_models import load_language_model  # noqa: PLC0415

    # The embedder first: it alone decides a hard refusal.
    _load("embedder", lambda: embedder_of(active_model()).encode_question("Ready?"))
    if settings.LANGUAGE_SERVER_URL:
        _states["language_model"] = State.ON_DEMAND
    else:
        _load("language_model", load_language_model)
    try:
        prepare_past_questions()
    except (NescioError, OperationalError, InterfaceError):
        logger.exception("Active policies need past questions, which can not be used.")
    finally:
        connection.close()


def prepare_past_questions() -> None:
    """Check the labels and load what an active policy asks, before anybody waits for it.

    Raises:
        LabelPairError: `NESCIO_HISTORY_LABELS` does not fit the language model.
        LanguageModelUnavailableError: The language model is a server's.
        ModelLoadError: The model is not there or cannot be read.
    """
    active = Policy.objects.filter(is_active=True)
    wanted = [*active.values_list("retrieval_timing", "debias_verdict").distinct()]
    # What a command that only wants the states should not pay for.
    from qa.own_knowledge import selection  # noqa: PLC0415

    if any(timing == RetrievalTiming.HISTORY for timing, _ in wanted):
        selection.history_form()
    if any(debiases for _, debiases in wanted):
        selection.verdict_form()


def _load(name: str, load: Callable[[], object]) -> None:
    began = time.monotonic()
    while True:
        try:
            load()
        except (OperationalError, InterfaceError):
            logger.warning("The %s waits for the database.", name)
            time.sleep(_RETRY_SECONDS)
            continue
        except NescioError:
            logger.exception("The %s can not be loaded.", name)
            _states[name] = State.FAILED
        else:
            logger.info("%s is ready after %.1f s.", name, time.monotonic() - began)
            _states[name] = State.LOADED
        finally:
            connection.close()
        return
