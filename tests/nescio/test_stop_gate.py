"""Signals that end an `up`: none is lost, and none disturbs the stopping."""

import os
import signal
import weakref

import pytest

from nescio.up.session import Stop, stop_gate


class Thing:
    """What a finalizer watches."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_lost_in_a_finalizer_is_made_good_by_the_next():
    said: list[str] = []
    with stop_gate(said.append) as gate:
        thing = Thing()
        weakref.finalize(thing, os.kill, os.getpid(), signal.SIGINT)
        del thing
        with pytest.raises(Stop):
            os.kill(os.getpid(), signal.SIGINT)
        gate.close()
        os.kill(os.getpid(), signal.SIGTERM)
    assert said == ["Already stopping; this takes half a minute at most."]
