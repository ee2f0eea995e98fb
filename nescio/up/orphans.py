"""What a killed `up` left running."""

import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from nescio.up.children import MARK


def find(var: Path) -> Sequence[psutil.Process]:
    """Return the live processes that an `up` for `var` started, whoever heads them now.

    They are known by a mark in their environment, which their own children inherit: no
    list of pids that a kill could leave half written, or that other processes could
    come to bear.
    """
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in ours and _mark(process) == str(var)
    ]


def end(processes: Sequence[psutil.Process], grace_seconds: float) -> None:
    """Ask the processes to end, and kill those that have not after `grace_seconds`."""
    for process in processes:
        try:
            process.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(processes, timeout=grace_seconds)
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=5)


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return None
    except OSError:  # it is gone before its environment was read
        return None
