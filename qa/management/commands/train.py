"""`manage.py train KIND`: fit a probe, directions, an adapter, a verifier or a reranker."""

from collections.abc import Mapping
from typing import Final

from qa.management import base, train_models, train_probes

KINDS: Final[Mapping[str, base.Kind]] = {**train_probes.KINDS, **train_models.KINDS}


class Command(base.KindsCommand):
    help = (
        "Fit what works beside the language model, and print what it is worth on what no "
        "fit saw. What was read of answers is kept: a training that is broken off goes "
        "on from there. Exit code: 0, or 2 if it can't be trained."
    )
    kinds = KINDS
