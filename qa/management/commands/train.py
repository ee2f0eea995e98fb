"""`manage.py train KIND`: fit a probe, directions, an adapter, a verifier or a reranker."""

from collections.abc import Mapping
from typing import Final

from qa.management import base, train_models, train_probes

KINDS: Final[Mapping[str, base.Kind]] = {**train_probes.KINDS, **train_models.KINDS}


class Command(base.KindsCommand):
    help = (
        "Fit a probe, directions, an adapter, a verifier or a reranker, and print its "
        "figures on held-out data. What was read from answers is kept: an interrupted "
        "training continues from there. Exit code: 0, or 2 if it can't be trained."
    )
    kinds = KINDS
