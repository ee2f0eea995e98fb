"""How far a command is, where nobody watches a terminal."""

from io import StringIO

from rich.console import Console

from qa.management import progress
from qa.management.progress import Bar


def shown(steps, *, terminal=False):
    """Return what a bar wrote of these (done, total)."""
    stream = StringIO()
    console = Console(file=stream, force_terminal=terminal, width=120)
    with Bar("Asking", console) as bar:
        for done, total in steps:
            bar.at(done, total)
    return stream.getvalue()


def test_without_a_terminal_every_tenth_is_a_line():
    lines = shown((done, 1_000) for done in range(1_001)).splitlines()

    told = [line.split(", ")[0] for line in lines]
    assert told == [f"Asking: {done:,} of 1,000" for done in range(0, 1_001, 100)]
    assert lines[-1].endswith("/s")


def test_slow_work_is_told_of_every_half_minute(monkeypatch):
    seconds = iter(range(0, 1_000, 7))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(seconds)))

    lines = shown((done, 10_000) for done in range(12)).splitlines()

    # Each question takes 7 s: 35 s are the first five.
    assert lines == [
        "Asking: 0 of 10,000",
        "Asking: 5 of 10,000, 0.1/s",
        "Asking: 10 of 10,000, 0.1/s",
    ]


def test_nothing_is_told_twice_and_nothing_where_there_is_nothing():
    assert len(shown([(3, 3), (3, 3)]).splitlines()) == 1
    assert shown([]) == ""


def test_what_was_done_before_counts_for_no_rate(monkeypatch):
    monkeypatch.setattr(progress, "monotonic", iter([0.0, 10.0]).__next__)

    lines = shown([(500, 1_000), (600, 1_000)]).splitlines()

    assert lines == ["Asking: 500 of 1,000", "Asking: 600 of 1,000, 10.0/s"]


def test_a_terminal_gets_a_bar():
    assert "\x1b[" in shown([(0, 10), (10, 10)], terminal=True)
