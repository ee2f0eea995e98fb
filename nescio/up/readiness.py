"""Waits until a started system answers."""

import time
from collections.abc import Mapping

from rich.console import Console

from nescio.up.address import Address
from nescio.up.children import Child
from nescio.up.exceptions import UpError
from nescio.up.questions import health
from nescio.up.supervisor import Supervisor, log_tail

_READY_SECONDS = 180.0
_MANY_DEATHS = 4
_POLL_SECONDS = 0.4


def wait_until_ready(
    address: Address,
    supervisor: Supervisor,
    processes: tuple[Child, ...],
    console: Console,
) -> None:
    """Return once the health check says so.

    Raises:
        UpError: The processes keep ending, or it takes too long; with what was lacking
            and the ends of the logs.
    """
    give_up_at = time.monotonic() + _READY_SECONDS
    lacking = "the web server"
    with console.status("Starting web server, worker and scheduler") as status:
        while True:
            is_ready, said = health(address)
            if is_ready:
                return
            lacking = _lacking(said)
            status.update(f"Waiting for {lacking}")
            if supervisor.deaths >= _MANY_DEATHS or time.monotonic() > give_up_at:
                raise UpError(_explain(lacking, processes))
            time.sleep(_POLL_SECONDS)


def _lacking(said: Mapping[str, object]) -> str:
    checks = said.get("checks")
    if not isinstance(checks, dict):
        return "the web server"
    return ", ".join(
        f"{name} ({found['detail']})"
        for name, found in checks.items()
        if not found["ok"]
    )


def _explain(lacking: str, processes: tuple[Child, ...]) -> str:
    logs = "\n".join(
        f"--- the end of {process.log}\n{log_tail(process.log)}"
        for process in processes
    )
    return f"The system did not become ready. Lacking: {lacking}\n{logs}"
