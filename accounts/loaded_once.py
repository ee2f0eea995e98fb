"""A cache of values such as models and probes, each loaded once per process."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic
from typing import Final, Generic, TypeVar

from accounts.exceptions import NescioError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
RETRY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, eq=False)
class _Slot(Generic[Value]):
    value: Value
    version: Hashable
    retry_at: float | None = None  # on the monotonic clock; None: loading succeeded

    def is_current(self, version: Hashable) -> bool:
        is_due = self.retry_at is not None and monotonic() >= self.retry_at
        return self.version == version and not is_due


class LoadedOnce(Generic[Key, Value]):
    """A cache by key; one thread loads a value while the others wait for it."""

    def __init__(self) -> None:
        self._slots: dict[Key, _Slot[Value]] = {}
        self._lock = threading.Lock()

    def get(
        self,
        key: Key,
        load: Callable[[], Value],
        *,
        version: Hashable = None,
        fallback: Callable[[NescioError], Value] | None = None,
    ) -> Value:
        """Return the value of a key, loading it if it is not cached in this version.

        `load` must not use this cache itself. If it fails, the value of `fallback` is
        cached instead, and loading is tried again after a minute; without `fallback`
        the error is raised.
        """
        slot = self._slots.get(key)
        if slot is None or not slot.is_current(version):
            with self._lock:
                slot = self._slots.get(key)
                if slot is None or not slot.is_current(version):
                    slot = self._slots[key] = _load(load, version, fallback)
        return slot.value

    def find(self, key: Key) -> Value | None:
        """Return the cached value of any version, or None."""
        slot = self._slots.get(key)
        return slot.value if slot else None

    def drop(self, key: Key) -> None:
        self._slots.pop(key, None)

    def clear(self) -> None:
        self._slots.clear()


def _load(
    load: Callable[[], Value],
    version: Hashable,
    fallback: Callable[[NescioError], Value] | None,
) -> _Slot[Value]:
    try:
        return _Slot(load(), version)
    except NescioError as error:
        if fallback is None:
            raise
        return _Slot(fallback(error), version, monotonic() + RETRY_SECONDS)
