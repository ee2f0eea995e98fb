"""The parts of `up` that need no running system."""

import http.server
import json
import os
import shlex
import subprocess
import sys
import threading
from stat import S_IMODE
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from rich.console import Console

from accounts.models import ApiToken
from kb.documents.models import KnowledgeBase
from nescio.up import UpError
from nescio.up import place as lock
from nescio.up import questions as report
from nescio.up.place import Address
from nescio.up.preparation import Credentials, ensure_credentials, load_knowledge
from nescio.up.questions import Asked, ask, choose, health
from qa.evaluation.cases import Case, read_cases
from qa.evaluation.suites.own import QUESTIONS
from qa.pipeline.gates import Gate, Reason
from tests.factories import make_knowledge_base

from .running import ROOT, free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def file(tmp_path):
    return tmp_path / "credentials.json"


@pytest.mark.django_db
def test_credentials_are_generated_kept_and_private(file):
    made = ensure_credentials(file)

    assert ensure_credentials(file) == made
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert made.admin_password is not None
    assert len(made.admin_password) == 20
    user = authenticate(username=made.username, password=made.admin_password)
    assert isinstance(user, User)
    assert user.is_superuser
    assert ApiToken.objects.count() == 1
    assert made.admin_password not in repr(made)


@pytest.mark.django_db
def test_the_demonstration_is_not_loaded_beside_knowledge_of_ones_own():
    User.objects.create_superuser("root")
    make_knowledge_base("own")

    load_knowledge(Console(quiet=True))

    assert [base.slug for base in KnowledgeBase.objects.all()] == ["own"]


@pytest.mark.django_db
def test_password_that_the_administrator_chose_is_left_alone(file):
    made = ensure_credentials(file)
    user = User.objects.get(username=made.username)
    user.set_password("my own choice")
    user.save()

    again = ensure_credentials(file)

    assert again.admin_password is None
    assert again.token == made.token
    assert User.objects.get(pk=user.pk).check_password("my own choice")
    assert json.loads(file.read_text())["admin_password"] is None


@pytest.mark.django_db
def test_token_that_was_revoked_is_replaced(file):
    made = ensure_credentials(file)
    ApiToken.objects.all().delete()

    again = ensure_credentials(file)

    assert again.token not in {None, made.token}
    assert again.admin_password == made.admin_password


@pytest.mark.django_db
def test_start_that_was_killed_before_the_account_was_made_uses_the_kept_password(file):
    file.write_text(
        json.dumps({"username": "admin", "admin_password": "kept", "token": None})
    )

    made = ensure_credentials(file)

    assert made.admin_password == "kept"
    assert authenticate(username="admin", password="kept") is not None


@pytest.mark.django_db
def test_name_that_someone_else_has_is_not_taken_over(file):
    User.objects.create_user("admin", password="mine")

    with pytest.raises(UpError, match="createsuperuser"):
        ensure_credentials(file)

    assert not User.objects.get(username="admin").is_superuser


@pytest.mark.django_db
def test_another_administrator_is_found_and_not_changed(file):
    own = User.objects.create_superuser("root", password="mine")

    made = ensure_credentials(file)

    assert (made.username, made.admin_password) == ("root", None)
    assert ApiToken.objects.get().user == own
    assert not User.objects.filter(username="admin").exists()


def test_directory_that_can_not_be_made_is_told_with_the_remedy(tmp_path):
    (tmp_path / "file").touch()

    with (
        pytest.raises(UpError, match=r"Not a directory.*NESCIO_VAR_DIR"),
        lock.hold(tmp_path / "file" / "var" / "up.lock", "http://here"),
    ):
        pass


def test_lock_is_for_one_and_ends_with_its_holder(tmp_path):
    file = tmp_path / "up.lock"
    script = (
        "import sys, time; from pathlib import Path; from nescio.up import place as lock\n"
        "with lock.hold(Path(sys.argv[1]), 'http://here'):\n"
        "    print('held', flush=True); time.sleep(300)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(file)], cwd=ROOT, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        other.stdout.readline()

        assert lock.holder(file) == other.pid
        with (
            pytest.raises(
                lock.AlreadyServedError, match=f"process {other.pid} at http://here"
            ),
            lock.hold(file, "http://there"),
        ):
            pass
        other.kill()
        other.wait()

    assert lock.holder(file) is None
    with lock.hold(file, "http://there"):
        assert lock.holder(file) == os.getpid()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("ask.example.org", "http://ask.example.org:8000"),
    ],
)
def test_url_is_one_that_this_machine_can_open(host, url):
    assert Address(host, 8000).url == url


def test_address_of_another_machine_can_not_be_listened_on():
    with pytest.raises(UpError, match="NESCIO_HOST"):
        Address("192.0.2.1", free_port()).require_free()


def test_chosen_questions_show_every_gate_and_then_every_reason():
    cases = read_cases(QUESTIONS)

    gates = {(case.is_answerable, case.gate) for case in cases}

    few, dozen = choose(cases, len(gates)), choose(cases, 12)

    assert {(case.is_answerable, case.gate) for case in few} == gates
    reasons = {case.reason for case in cases}
    assert {case.reason for case in dozen} == reasons
    assert {case.asker for case in dozen} == {case.asker for case in cases}
    assert choose(cases, sys.maxsize) == cases
    assert choose(cases, 0) == ()


REFUSAL = {
    "answered": False,
    "gate": "hard_refusal",
    "reason": "too_far",
    "text": "I can't say.",
    "evidence": [],
    "near_misses": [
        {
            "entry": 7,
            "distance": 1.25,
            "confidence": 0.5,
            "verified": False,
            "document": "Prices",
            "section": "Fees",
            "text": "A card costs [bold]72[/bold] euros.",
        }
    ],
}


def _case(**changes):
    values: dict[str, Any] = {
        "id": "one",
        "question": "Why [red]is[/red] the sky blue?",
        "is_answerable": False,
        "gate": Gate.HARD_REFUSAL,
        "reason": Reason.TOO_FAR,
        "evidence": (),
        "answer_contains": (),
        "asker": ("agent",),
    }
    return Case(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "is_as_expected"),
    [
        ({}, True),
        ({"is_answerable": True, "gate": None, "reason": None}, False),
        ({"gate": Gate.SOFT_REFUSAL}, False),
        ({"reason": Reason.EXPIRED_ONLY}, False),
        # A policy may keep it from the asker.
        ({"reason": Reason.NOT_ENTITLED}, True),
        ({"answer_contains": ("I CAN'T", "no")}, True),
        ({"answer_contains": ("72 euros",)}, False),
    ],
)
def test_outcome_is_held_against_what_was_expected(changes, is_as_expected):
    assert Asked(_case(**changes), REFUSAL, 0.1).is_as_expected is is_as_expected


def test_report_shows_outcome_gate_reason_and_evidence_as_they_are():
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115

    with console.file:
        console.print(report.outcome(3, Asked(_case(), REFUSAL, 0.1)))
        console.print(report.summary([Asked(_case(), REFUSAL, 0.1)]))

    shown = console.export_text()
    for part in (
        "3. Why [red]is[/red] the sky blue?", "refused", "hard_refusal", "too_far",
        "100 ms", "I can't say.", "distance 1.25", "confidence 0.50", "not verified",
        "Prices \u203a Fees", "A card costs [bold]72[/bold] euros.",
        "1 questions: 0 answered, 1 refused; 1 as expected.",
    ):  # fmt: skip
        assert part in shown


def test_curl_line_is_one_command_with_the_token():
    line = report.curl_line(Address("0.0.0.0", 9), Credentials(token="nsc_1"))

    words = shlex.split(line)

    assert words[:3] == ["curl", "-sS", "http://127.0.0.1:9/api/v1/ask"]
    assert "Authorization: Token nsc_1" in words
    assert json.loads(words[-1])["question"]


class _Broken(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b'{"detail": "The language server is down."}')

    def log_message(self, *_arguments):
        """Keep quiet."""


def test_server_that_fails_a_question_is_quoted():
    with http.server.HTTPServer(("127.0.0.1", 0), _Broken) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = Address("127.0.0.1", server.server_port)
            with pytest.raises(UpError, match=r"HTTP 503.*The language server is down"):
                ask(address, "nsc_1", _case())
        finally:
            server.shutdown()
            thread.join()

    assert health(address) == (False, {})
    with pytest.raises(UpError, match="did not answer"):
        ask(address, "nsc_1", _case())
