"""The counters that the web server's processes share."""

import multiprocessing
import sqlite3
import threading

import pytest

from accounts import counter_file, throttles
from accounts.counter_file import CounterFile
from tests.waiting import GIVE_UP_SECONDS


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "made" / "counts.sqlite3")


@pytest.fixture
def counts(file):
    return CounterFile(file, {})


def test_a_count_begins_once_and_is_added_to(counts):
    assert counts.add("a", 0, timeout=60)
    assert not counts.add("a", 5, timeout=60)

    assert [counts.incr("a"), counts.incr("a", 2)] == [1, 3]
    assert counts.get("a") == 3
    assert counts.get("b") is None


def test_what_was_never_begun_can_not_be_added_to(counts):
    with pytest.raises(ValueError, match="'a'"):
        counts.incr("a")


@pytest.mark.slow
def test_a_count_that_is_over_begins_again_and_leaves_nothing(counts, file):
    counts.set("old", 7, timeout=-1)
    counts.set("older", 7, timeout=-1)

    assert counts.get("old") is None
    with pytest.raises(ValueError, match="old"):
        counts.incr("old")
    assert counts.add("old", 0, timeout=60)
    assert counts.incr("old") == 1
    with sqlite3.connect(file) as opened:
        assert opened.execute("SELECT count(*) FROM counts").fetchone() == (1,)
    opened.close()


def test_one_is_taken_away_or_all(counts):
    for key in "abc":
        counts.set(key, 1, timeout=None)

    assert counts.delete("a")
    assert not counts.delete("a")
    assert counts.get("b") == 1
    counts.clear()
    assert counts.get("b") is None


def wait_long(patch):
    """Let no busy machine decide whether one has its turn in time."""
    patch.setattr(counter_file, "_WAIT_SECONDS", GIVE_UP_SECONDS)


def count_to(file, number):
    wait_long(pytest.MonkeyPatch())  # in a process of its own
    own = CounterFile(file, {})
    for _ in range(number):
        own.incr("together")


@pytest.mark.slow
def test_processes_and_threads_at_once_lose_no_count(counts, file, monkeypatch):
    wait_long(monkeypatch)
    counts.set("together", 0, timeout=60)
    context = multiprocessing.get_context("spawn")
    work = (context.Process, context.Process, threading.Thread, threading.Thread)
    begun = [each(target=count_to, args=(file, 200)) for each in work]
    for each in begun:
        each.start()
    for each in begun:
        each.join(GIVE_UP_SECONDS)

    assert counts.get("together") == 800


def begin_each(files, together):
    wait_long(pytest.MonkeyPatch())
    for file in files:
        together.wait()
        CounterFile(file, {}).add("a", 0, timeout=60)


@pytest.mark.slow
def test_processes_that_open_a_new_file_at_once_all_count(tmp_path):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(4, timeout=GIVE_UP_SECONDS)
    files = [str(tmp_path / f"{number}.sqlite3") for number in range(40)]
    begun = [
        context.Process(target=begin_each, args=(files, together)) for _ in range(4)
    ]
    for each in begun:
        each.start()
    for each in begun:
        each.join(GIVE_UP_SECONDS)
        each.kill()

    assert [each.exitcode for each in begun] == [0, 0, 0, 0]


def test_the_file_is_for_its_owner_alone(counts, tmp_path):
    counts.set("a", 1)

    assert (tmp_path / "made").stat().st_mode & 0o077 == 0
    assert (tmp_path / "made" / "counts.sqlite3").stat().st_mode & 0o077 == 0


def test_a_file_that_can_not_be_used_throttles_nobody_and_is_logged(
    tmp_path, monkeypatch, caplog
):
    (tmp_path / "counts.sqlite3").write_text("no database" * 100)
    broken = CounterFile(str(tmp_path / "counts.sqlite3"), {})
    monkeypatch.setattr(throttles, "cache", broken)

    assert throttles.seconds_to_wait("login", "somebody") is None
    assert "not throttled" in caplog.text
