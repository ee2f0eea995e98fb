"""Whole systems as subprocesses: `manage.py up` on a variable directory of its own."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.waiting import GIVE_UP_SECONDS

ROOT = Path(__file__).resolve().parents[2]
_READY_SECONDS = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RunningSystem:
    """One `up`, its output, and what it says to scripts."""

    def __init__(self, var, port, *, arguments=("--questions", "0"), user=None):
        self.var = Path(var)
        self.output_file = self.var.with_name(f"{self.var.name}.out")
        self.url = f"http://127.0.0.1:{port}"
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DATABASE_URL", "CELERY_BROKER_URL"}
        }
        environment |= {"NESCIO_VAR_DIR": str(var), "NESCIO_PORT": str(port)}
        # With a judge a worker compares the demonstration's entries for a minute and more,
        # in each start again that comes before its end.
        environment["NESCIO_CONFLICT_JUDGE"] = "none"
        self.began = time.time()
        with self.output_file.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **(user or {}),
            )

    @property
    def output(self):
        return self.output_file.read_text(errors="replace")

    @property
    def access(self):
        return json.loads((self.var / "up.json").read_text())

    def wait_until_ready(self, seconds=_READY_SECONDS):
        give_up_at = time.monotonic() + seconds
        while not self._is_announced():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < give_up_at, self.output
            time.sleep(0.1)
        return self

    def _is_announced(self):
        # A run that was killed left its file behind.
        file = self.var / "up.json"
        return file.exists() and file.stat().st_mtime >= self.began

    def seconds(self):
        return time.time() - self.began

    def request(self, method, path, body=None, token=None):
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=GIVE_UP_SECONDS)
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Token {token}"
        try:
            connection.request(
                method, path, json.dumps(body) if body else None, headers
            )
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def wait_for_health(self, is_well):
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        status, said = 0, {}
        while time.monotonic() < give_up_at:
            try:
                status, said = self.request("GET", "/healthz")
            except (OSError, http.client.HTTPException):
                status, said = 0, {}
            if is_well(status, said):
                return said
            time.sleep(0.2)
        raise AssertionError(f"health: {status} {said}\n{self.output}")

    def wait_for_output(self, text):
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        while text not in self.output:
            assert time.monotonic() < give_up_at, self.output
            time.sleep(0.1)

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=GIVE_UP_SECONDS):
        return self.process.wait(timeout)

    def stop(self):
        if self.process.poll() is None:
            self.send(signal.SIGINT)
        return self.wait()


def give_models(models, var):
    """Let a fresh variable directory have the models that are prepared already."""
    var.mkdir(parents=True, exist_ok=True)
    shutil.copytree(models, var / "models", copy_function=os.link)
