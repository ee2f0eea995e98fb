"""The number of torch's threads: one in a process that will fork."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

_forks_later = False


def set_torch_threads() -> None:
    """Set torch's number of threads; called when a process loads its first model."""
    import torch  # noqa: PLC0415  # takes seconds, and most commands don't need it

    torch.set_num_threads(1 if _forks_later else settings.TORCH_THREADS)


@contextmanager
def before_forking() -> Iterator[None]:
    """Load models within the block with one thread; a fork would hang with more."""
    global _forks_later  # per process, like torch's own number
    _forks_later = True
    try:
        yield
    finally:
        _forks_later = False
