"""How many threads torch computes with: one in a process that is yet to fork."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

_forks_later = False


def set_torch_threads() -> None:
    """Set what the settings say; the first model that a process loads calls it."""
    import torch  # noqa: PLC0415  # seconds, which most commands need not pay

    torch.set_num_threads(1 if _forks_later else settings.TORCH_THREADS)


@contextmanager
def before_forking() -> Iterator[None]:
    """Load models in the block without threads: a fork would wait for them for ever."""
    global _forks_later  # of the process, as torch's own number is
    _forks_later = True
    try:
        yield
    finally:
        _forks_later = False
