import threading

import pytest

from accounts import loaded_once
from accounts.exceptions import NescioError, UnavailableError
from accounts.loaded_once import LoadedOnce


class Loader:
    """Loads a new object each time, or fails; counts how often."""

    def __init__(self, error: NescioError | None = None):
        self.error, self.calls = error, 0
        self.may_end = threading.Event()
        self.may_end.set()

    def __call__(self) -> object:
        self.calls += 1
        self.may_end.wait(5)
        if self.error:
            raise self.error
        return object()


def test_several_threads_wait_for_one_load():
    held, load, found = LoadedOnce[str, object](), Loader(), []
    load.may_end.clear()
    threads = [
        threading.Thread(target=lambda: found.append(held.get("a", load)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    load.may_end.set()
    for thread in threads:
        thread.join()

    assert load.calls == 1
    assert len(found) == 4
    assert len(set(found)) == 1
    assert held.find("a") is found[0]
    assert held.find("b") is None


def test_another_version_replaces_what_was_held():
    held, load = LoadedOnce[str, object](), Loader()

    first, again, second = (held.get("a", load, version=v) for v in (1, 1, 2))

    assert first is again
    assert held.find("a") is second is not first
    assert load.calls == 2


def test_a_failed_load_is_raised_and_tried_again_with_the_next_call():
    held, load = LoadedOnce[str, object](), Loader(UnavailableError("It is down."))

    for _ in range(2):
        with pytest.raises(UnavailableError):
            held.get("a", load)

    assert load.calls == 2
    assert held.find("a") is None


def test_a_fallback_is_held_for_a_minute(monkeypatch):
    now = 100.0
    monkeypatch.setattr(loaded_once, "monotonic", lambda: now)
    held, load = LoadedOnce[str, object](), Loader(UnavailableError("It is down."))

    assert [held.get("a", load, fallback=str) for _ in range(3)] == ["It is down."] * 3
    assert load.calls == 1

    now, load.error = 160.0, None
    value = held.get("a", load, fallback=str)
    now = 10_000.0
    assert value != "It is down."
    assert held.get("a", load, fallback=str) is value
    assert load.calls == 2


def test_what_is_dropped_is_loaded_again():
    held, load = LoadedOnce[str, object](), Loader()
    held.get("a", load)
    held.drop("a")
    held.get("a", load)
    held.clear()

    assert held.find("a") is None
    assert load.calls == 2
