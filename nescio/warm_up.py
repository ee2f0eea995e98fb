"""Loading of the models at the start of the web server, so that no question waits.

Weights are loaded before the processes are forked, which share them; each process then
tests the models in a thread, as the settings in the database require.
"""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from accounts.exceptions import NescioError
from accounts.model_service import ModelServiceError
from accounts.torch_threads import before_forking
from kb.embedding.embedder import get_embedder, is_on_server, load_embedder
from kb.embedding.services import active_model
from nescio.forking import model_libraries
from qa.answers.sources import configured_verifier
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.refusal_detector import compiled_patterns
from qa.pipeline.weighing import Passage
from qa.policies.models import Policy

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_READY = (Passage("", "", "", "Ready."),)


class State(StrEnum):
    ON_DEMAND = "loads with the first question"
    LOADING = "loading"
    LOADED = "loaded"
    FAILED = "failed"


_states = {
    "embedder": State.ON_DEMAND,
    "verifier": State.ON_DEMAND,
    "language_model": State.ON_DEMAND,
}


def states() -> Mapping[str, State]:
    return dict(_states)


def _is_loaded_at_start(name: str) -> bool:
    if name == "verifier":
        return bool(settings.VERIFIER != "none")
    if name == "language_model":
        return not settings.LANGUAGE_SERVER_URL
    return True


def load_before_forking() -> None:
    """Load the models that answer questions, without a thread or a database connection.

    If one fails, each process tries again and reports the failure in its health check.
    On a GPU this loads nothing, as each process has its own memory there.
    """
    compiled_patterns()
    if not model_libraries():
        return
    # Without this, the check would initialize CUDA, which does not survive a fork.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    # Imported here, so that commands that only read the states need not wait.
    from probes.language_model.loading import choose_device  # noqa: PLC0415
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    if choose_device(settings.MODEL_DEVICE).type != "cpu":
        return
    loads: dict[str, Callable[[], object]] = {
        "embedder": lambda: load_embedder(settings.EMBEDDING_MODEL),
        "verifier": configured_verifier,
        "language_model": load_language_model,
    }
    # Models that run on another server need no memory here.
    if settings.MODEL_SERVICE_URL:
        del loads["verifier"]
    if settings.MODEL_SERVICE_URL or is_on_server(settings.EMBEDDING_MODEL):
        del loads["embedder"]
    began = time.monotonic()
    with before_forking():
        for name in filter(_is_loaded_at_start, loads):
            try:
                loads[name]()
            except NescioError:
                logger.exception("The %s cannot be loaded.", name)
    gc.collect()
    gc.freeze()
    logger.info("The models are loaded after %.1f s.", time.monotonic() - began)


def begin() -> None:
    """Test the models that answer questions in a thread, loading them if needed."""
    for name in filter(_is_loaded_at_start, _states):
        _states[name] = State.LOADING
    threading.Thread(target=_load_all, name="warm-up", daemon=True).start()


def _load_all() -> None:
    # Imported here, so that commands that only read the states need not wait.
    from qa.inference.configured import load_language_model  # noqa: PLC0415

    # The embedder first: it is enough to decide a hard refusal.
    loads: Mapping[str, Callable[[], object]] = {
        "embedder": lambda: get_embedder(active_model()).encode_question("Ready?"),
        "verifier": _try_verifier,
        "language_model": load_language_model,
    }
    for name in filter(_is_loaded_at_start, loads):
        _load(name, loads[name])
    try:
        prepare_policies()
    except (OperationalError, InterfaceError):
        logger.exception("The requirements of active policies could not be read.")
    finally:
        connection.close()


def _try_verifier() -> None:
    verifier = configured_verifier()
    verifier.score("Ready?", _READY)
    if verifier.reads_jointly:
        verifier.joint_log_odds("Ready?", _READY)


def prepare_policies() -> None:
    """Load and check the models that active policies need; log those that fail."""
    active = Policy.objects.filter(is_active=True)
    wanted = active.values_list("retrieval_timing", "debias_verdict", "rerank")
    for what, prepare in _preparations([*wanted.distinct()]):
        try:
            prepare()
        except NescioError:
            logger.exception("Active policies need %s, which cannot be used.", what)


def _preparations(
    wanted: Sequence[tuple[str, bool, bool]],
) -> Iterator[tuple[str, Callable[[], object]]]:
    timings = {timing for timing, _, _ in wanted} - {RetrievalTiming.ALWAYS}
    debiases = any(debiases for _, debiases, _ in wanted)
    ranks = any(ranks for _, _, ranks in wanted)
    if not (timings or debiases or ranks):
        return
    # Imported here, so that processes that need none of these need not wait.
    from qa.inference import known_by_probe as boundary  # noqa: PLC0415
    from qa.inference import monitored_writer as monitored_selection  # noqa: PLC0415
    from qa.inference import policy_models  # noqa: PLC0415

    by_timing: dict[str, tuple[str, Callable[[], object]]] = {
        RetrievalTiming.BOUNDARY: (
            "a boundary probe",
            lambda: boundary.active_boundary_probe(
                policy_models.load_closed_book_form()
            ),
        ),
        RetrievalTiming.HISTORY: ("past questions", policy_models.history_form),
        RetrievalTiming.LOG_PROBABILITY: (
            "the model as it came",
            policy_models.load_closed_book_form,
        ),
        RetrievalTiming.MONITORED: ("directions", monitored_selection.monitored_writer),
    }
    yield from (each for timing, each in by_timing.items() if timing in timings)
    if debiases:
        yield "past verdicts", policy_models.verdict_form
    if ranks:
        yield "a reranker", policy_models.configured_reranker


def _load(name: str, load: Callable[[], object]) -> None:
    began = time.monotonic()
    while True:
        try:
            load()
        except (OperationalError, InterfaceError, ModelServiceError) as error:
            logger.warning("The %s waits: %s", name, error)
            time.sleep(_RETRY_SECONDS)
            continue
        except NescioError:
            logger.exception("The %s cannot be loaded.", name)
            _states[name] = State.FAILED
        else:
            logger.info("%s is ready after %.1f s.", name, time.monotonic() - began)
            _states[name] = State.LOADED
        finally:
            connection.close()
        return
