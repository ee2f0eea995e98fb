"""The queue of each kind of job, so that jobs of hours do not delay the others.

Each queue has its own worker. A kind that is not listed here is interactive: it takes
seconds, or someone waits for it.
"""

from pathlib import Path
from typing import Any

INTERACTIVE = "interactive"
IMPORTS = "imports"
TRAINING = "training"
EVALUATION = "evaluation"
QUEUES = (INTERACTIVE, IMPORTS, TRAINING, EVALUATION)

JOB_QUEUES = {
    "kb.embed": IMPORTS,
    "kb.enrich": IMPORTS,
    "kb.export": IMPORTS,
    "kb.find_conflicts": IMPORTS,
    "kb.follow": IMPORTS,
    "kb.import": IMPORTS,
    "kb.tidy_vectors": IMPORTS,
    "probes.train": TRAINING,
    "qa.keep_past_questions": TRAINING,
    "qa.retrain": TRAINING,
    "qa.calibrate_itself": EVALUATION,
    "qa.evaluate": EVALUATION,
    "qa.watch_drift": EVALUATION,
}

JOB_KINDS = (
    "chat.slack",
    "integrations.mail_alerts",
    "kb.change_entries",
    "kb.embed",
    "kb.enrich",
    "kb.export",
    "kb.find_conflicts",
    "kb.follow",
    "kb.import",
    "kb.keep_upkeep",
    "kb.remind_owners",
    "kb.tidy_vectors",
    "probes.train",
    "qa.ask_again",
    "qa.calibrate_itself",
    "qa.calibrate_where_due",
    "qa.draw_reviews",
    "qa.erase_old_texts",
    "qa.erase_person",
    "qa.evaluate",
    "qa.find_gaps",
    "qa.keep_past_questions",
    "qa.mail_notice",
    "qa.retrain",
    "qa.watch_drift",
    "qa.weigh_votes",
)
"""The kinds with handlers in `workers.registry`, listed here without importing them."""


def broker_options(url: str, folder: Path) -> dict[str, Any]:
    """Return Celery's transport options; `folder` is for the file-based broker."""
    if url.startswith("filesystem:"):
        return {"data_folder": str(folder), "polling_interval": 0.25}
    if not url.startswith(("redis:", "rediss:")):
        return {}
    return {
        "visibility_timeout": 300,  # a second delivery of a running job does nothing
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
    }
