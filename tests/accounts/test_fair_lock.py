import signal
import threading

import pytest

from accounts.fair_lock import FairLock
from tests.waiting import GIVE_UP_SECONDS, wait_until


@pytest.fixture
def lock():
    return FairLock()


@pytest.fixture
def line_up(lock):
    """Start a thread that takes the lock and calls `work`; return when it is in line."""
    started = []

    def start(work):
        def take():
            with lock:
                work()

        before = lock.waiting
        started.append(threading.Thread(target=take))
        started[-1].start()
        wait_until(lambda: lock.waiting > before)

    yield start
    for each in started:
        each.join(GIVE_UP_SECONDS)
        assert not each.is_alive()


def test_those_who_wait_have_their_turns_in_order(lock, line_up):
    took = []
    with lock:
        for number in range(5):
            line_up(lambda number=number: took.append(number))
        assert took == []

    with lock:  # behind all of them
        assert took == [0, 1, 2, 3, 4]


def test_one_who_has_it_may_take_it_again(lock, line_up):
    took = []
    with lock:
        line_up(lambda: took.append("other"))
        with lock:
            took.append("inner")
        took.append("outer")

    with lock:
        assert took == ["inner", "outer", "other"]


def test_one_who_is_interrupted_while_waiting_leaves_the_line(lock):
    def interrupt(*_):
        raise InterruptedError

    def hold():
        with lock:
            holds.set()
            wait_until(lambda: lock.waiting)
            signal.pthread_kill(waiter, signal.SIGUSR1)
            let_go.wait(GIVE_UP_SECONDS)

    waiter = threading.get_ident()
    before = signal.signal(signal.SIGUSR1, interrupt)
    holds, let_go = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold)
    try:
        holder.start()
        holds.wait(GIVE_UP_SECONDS)
        with pytest.raises(InterruptedError), lock:
            pass
        assert lock.waiting == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
        let_go.set()
        holder.join(GIVE_UP_SECONDS)

    with lock:
        assert lock.waiting == 0
