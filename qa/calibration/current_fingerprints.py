"""What runs now, as far as that is known without loading a model."""

from dataclasses import dataclass

from kb.embedding.models import EmbeddingModel
from kb.search import METHOD
from qa.answers.models import Answer
from qa.pipeline.staleness import calibration_under
from qa.pipeline.values import Calibration
from qa.policies.models import Policy


@dataclass(frozen=True, slots=True)
class Running:
    """Fingerprints of what decides questions; "" where nothing has been asked yet.

    Attributes:
        embedder: Of the active embedding model.
        retrieval: The way of searching, and its metric.
        language_model: Of the one that wrote the last answer: loading one takes seconds
            and hundreds of megabytes, which a page does not wait for.

        probes: Those active when it wrote, separated by spaces; "" for none, None where
            nothing was written.
    """

    embedder: str
    retrieval: str
    language_model: str
    probes: str | None = None


def current_fingerprints() -> Running:
    """Return what runs now (two queries)."""
    active = EmbeddingModel.objects.filter(state=EmbeddingModel.State.ACTIVE)
    written = Answer.objects.exclude(language_model="").order_by("-created_at")
    language_model, probes = written.values_list(
        "language_model", "probes"
    ).first() or ("", None)
    return Running(
        embedder=active.values_list("fingerprint", flat=True).first() or "",
        retrieval=METHOD,
        language_model=language_model,
        probes=probes,
    )


def calibration_state(policy: Policy, running: Running | None = None) -> Calibration:
    """Tell whether a version's thresholds hold for what runs now.

    Args:
        policy: A version, active or not.
        running: What runs, for who asks about many versions; looked up if None.
    """
    running = running or current_fingerprints()
    return calibration_under(
        policy.as_value(),
        embedder=running.embedder,
        retrieval=running.retrieval,
        language_model=running.language_model,
        probes=running.probes,
    )
