"""Mails of jobs: what the server refuses for good is given up, what it refuses now is not."""

from smtplib import SMTPRecipientsRefused

import pytest
from django.contrib.auth.models import User
from django.core.mail.backends.base import BaseEmailBackend

from jobs.exceptions import RetryableJobError
from jobs.mail import mail_to

ADDRESS = "olga@example.org"


class Refusing(BaseEmailBackend):
    """A mail server that refuses the address with a code."""

    code = 550

    def send_messages(self, email_messages):
        raise SMTPRecipientsRefused({ADDRESS: (self.code, b"no")})


@pytest.fixture
def refuse(settings, monkeypatch):
    settings.EMAIL_BACKEND = f"{__name__}.Refusing"
    return lambda code: monkeypatch.setattr(Refusing, "code", code)


def test_an_address_that_is_refused_for_good_keeps_no_other_waiting(refuse, caplog):
    refuse(550)

    assert not mail_to(User(pk=7, email=ADDRESS), subject="Due", body="It is due.")
    assert "the address of user 7" in caplog.text


@pytest.mark.parametrize("code", [421, 450, 452])
def test_an_address_that_is_refused_for_now_is_tried_again(refuse, code):
    refuse(code)

    with pytest.raises(RetryableJobError, match="user 7 for now"):
        mail_to(User(pk=7, email=ADDRESS), subject="Due", body="It is due.")
