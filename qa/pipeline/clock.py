"""How long each stage took."""

from collections.abc import Callable
from time import perf_counter
from typing import ParamSpec, TypeVar

from .outcome import StageTime

P = ParamSpec("P")
T = TypeVar("T")


class Clock:
    """Times calls; one for each question."""

    def __init__(self) -> None:
        self._times: list[StageTime] = []

    def time(
        self, stage: str, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what `call` returns and remember how long it took."""
        start = perf_counter()
        value = call(*args, **kwargs)
        self._times.append(StageTime(stage, (perf_counter() - start) * 1000))
        return value

    @property
    def times(self) -> tuple[StageTime, ...]:
        """The stages so far, in order."""
        return tuple(self._times)
