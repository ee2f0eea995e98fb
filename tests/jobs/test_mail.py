"""Mails of jobs: what a server refuses for good is given up, what it refuses now is not."""

import socketserver
import threading
from collections.abc import Iterator
from smtplib import SMTPAuthenticationError, SMTPNotSupportedError

import pytest
from django.contrib.auth.models import User

from accounts.mail import fault_of
from jobs.exceptions import MailRefusedError, RetryableJobError
from jobs.mail import mail_to

pytestmark = pytest.mark.slow

OLGA = User(pk=7, email="olga@example.org")


class _Conversation(socketserver.StreamRequestHandler):
    """Answers each command with success, except those in the server's `answers`."""

    def handle(self) -> None:
        answers: dict[str, str] = self.server.answers  # type: ignore[attr-defined]
        self._say(answers.get("", "220 mail.example.org"))
        while line := self.rfile.readline().decode():
            verb = line.split(":")[0].split()[0].upper()
            if verb == "DATA" and verb not in answers:
                self._say("354 Go on")
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
                verb = "."
            self._say(answers.get(verb, "250 OK"))

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())


@pytest.fixture
def answers(settings) -> Iterator[dict[str, str]]:
    """Return the answers by command that a mail server gives; "" is its greeting."""
    found: dict[str, str] = {}
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation) as server:
        server.answers = found  # type: ignore[attr-defined]
        server.daemon_threads = True
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def send() -> bool:
    return mail_to(OLGA, subject="Due", body="It is due.")


def test_a_mail_that_the_server_takes_is_sent(answers):
    assert send()


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ({"RCPT": "550 No such user here"}, "refuses the address for good (550)"),
        ({".": "554 5.7.1 Rejected"}, "refuses the mail for good (554 5.7.1 Rejected)"),
        (
            {".": "550 5.1.1 <olga@example.org>: unknown"},
            "refuses the mail for good (550 5.1.1 (address): unknown)",
        ),
        ({"MAIL": "552 Too large"}, "refuses the mail for good (552 Too large)"),
    ],
)
def test_a_mail_refused_for_good_keeps_no_other_waiting(answers, caplog, refused, said):
    answers |= refused

    assert not send()
    assert "user 7" in caplog.text
    assert said in caplog.text
    assert "olga" not in caplog.text


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ({"RCPT": "450 Greylisted"}, r"refuses the address for now \(450\)"),
        ({"RCPT": "452 Box is full"}, r"refuses the address for now \(452\)"),
        ({".": "451 Later"}, r"takes no mail for now \(451 Later\)"),
        ({"MAIL": "452 No space"}, r"takes no mail for now \(452 No space\)"),
        ({"": "421 Too many"}, r"takes no mail for now \(421 Too many\)"),
    ],
)
def test_what_is_refused_for_now_is_tried_again(answers, refused, said):
    answers |= refused

    with pytest.raises(RetryableJobError, match=f"user 7 .*mail server {said}"):
        send()


def test_a_server_that_is_down_is_tried_again_and_said_to_be(answers, settings):
    settings.EMAIL_PORT = 1

    with pytest.raises(RetryableJobError, match=r"can't be reached.* refused"):
        send()


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ({"MAIL": "553 Not yours"}, "sender desk@example.org .*NESCIO_MAIL_FROM"),
        ({"": "554 No mail here"}, "refuses every mail .*554.*NESCIO_MAIL_URL"),
    ],
)
def test_what_only_other_settings_help_is_not_tried_again(
    answers, settings, refused, said
):
    settings.DEFAULT_FROM_EMAIL = "desk@example.org"
    answers |= refused

    with pytest.raises(MailRefusedError, match=said):
        send()


def test_a_sign_in_that_fails_is_of_the_settings():
    refused = fault_of(SMTPAuthenticationError(535, b"Bad  password"))
    busy = fault_of(SMTPAuthenticationError(454, "Later"))

    assert "sign-in (535 Bad password): correct NESCIO_MAIL_URL" in refused.said
    assert (refused.is_lasting, refused.is_of_all) == (True, True)
    assert not busy.is_lasting
    assert "can't do what NESCIO_MAIL_URL" in fault_of(SMTPNotSupportedError("x")).said
