"""Requests that come at the same time are computed together, each with its own result."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from accounts.batches import Batches, OverdueError
from tests.waiting import wait_until

SOON = 60.0


class Doubling:
    """Doubles numbers, noting each batch; the first one waits to be let go."""

    def __init__(self):
        self.batches, self.begun, self.go_on = [], threading.Event(), threading.Event()

    def __call__(self, numbers):
        self.batches.append([*numbers])
        self.begun.set()
        assert self.go_on.wait(SOON)
        if -1 in numbers:
            raise ValueError("-1 has no double here")
        return [2 * each for each in numbers]


def _ask_while_first_waits(batches, run, numbers, deadline=SOON):
    """Ask 1, and the others while it is computed; return what each came to."""

    def ask(number, seconds=SOON):
        try:
            return batches.ask(number, deadline=time.monotonic() + seconds)
        except (OverdueError, ValueError) as error:
            return type(error)

    with ThreadPoolExecutor(len(numbers) + 1) as pool:
        first = pool.submit(ask, 1)
        assert run.begun.wait(SOON)
        others = [pool.submit(ask, number, deadline) for number in numbers]
        wait_until(lambda: batches.waiting == len(numbers))
        time.sleep(0.05)  # some of them shall have waited too long
        run.go_on.set()
        return [first.result(), *(each.result() for each in others)]


def test_what_waits_is_computed_together_and_each_gets_its_own():
    run = Doubling()
    found = _ask_while_first_waits(Batches(run, most=32), run, range(2, 22))

    assert found == [2, *(2 * each for each in range(2, 22))]
    assert run.batches[0] == [1]
    assert [sorted(each) for each in run.batches[1:]] == [[*range(2, 22)]]


def test_a_batch_is_no_larger_than_it_may_be():
    run = Doubling()
    found = _ask_while_first_waits(Batches(run, most=8), run, range(2, 22))

    assert found == [2, *(2 * each for each in range(2, 22))]
    assert [len(each) for each in run.batches] == [1, 8, 8, 4]


@pytest.mark.slow
def test_what_fails_is_told_to_all_of_its_batch_and_to_nobody_else():
    run = Doubling()
    batches = Batches(run, most=32)
    found = _ask_while_first_waits(batches, run, [12, -1, 14])

    assert found == [2, ValueError, ValueError, ValueError]
    assert batches.ask(4, deadline=time.monotonic() + SOON) == 8


def test_whoever_waits_no_longer_costs_nothing():
    run = Doubling()
    found = _ask_while_first_waits(Batches(run, most=32), run, [2, 3], deadline=0.01)

    assert found == [2, OverdueError, OverdueError]
    assert run.batches == [[1]]


def test_one_alone_waits_for_nobody():
    run = Doubling()
    run.go_on.set()
    batches = Batches(run, most=32)

    assert [batches.ask(each, deadline=time.monotonic() + SOON) for each in (1, 2)] == [
        2,
        4,
    ]
    assert run.batches == [[1], [2]]
    with pytest.raises(OverdueError):
        batches.ask(3, deadline=time.monotonic() - 1)
