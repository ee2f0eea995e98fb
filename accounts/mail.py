"""Classification of mail server errors: which mails they affect, whether to retry."""

import re
from dataclasses import dataclass
from smtplib import (
    SMTPAuthenticationError,
    SMTPDataError,
    SMTPException,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPSenderRefused,
)
from typing import Final

from django.conf import settings

_FOR_GOOD: Final = 500  # SMTP errors from this code on are permanent
_TOO_LARGE: Final = 552
_MAX_WORDS: Final = 200  # characters of the server's answer
_ADDRESS: Final = re.compile(r"<?[^\s<>]+@[^\s<>]+>?")


@dataclass(frozen=True, slots=True)
class MailFault:
    """The reason why a mail was not accepted.

    Attributes:
        said: What the mail server does, without the recipient's address.
        is_lasting: Sent again, the mail would be refused again.
        is_of_all: All other mails would fail too.
    """

    said: str
    is_lasting: bool
    is_of_all: bool


def fault_of(error: SMTPException | OSError) -> MailFault:
    """Classify an error that occurred in sending a mail to one address."""
    if isinstance(error, SMTPRecipientsRefused):
        # One recipient, so one code. The server's text is left out: it may repeat the
        # address.
        code = min((code for code, _ in error.recipients.values()), default=0)
        how = "for good" if code >= _FOR_GOOD else "for now"
        said = f"refuses the address {how} ({code})"
        return MailFault(said, is_lasting=code >= _FOR_GOOD, is_of_all=False)
    if isinstance(error, SMTPNotSupportedError):
        said = f"can't do what NESCIO_MAIL_URL asks for ({error}): correct it"
        return MailFault(said, is_lasting=True, is_of_all=True)
    if not isinstance(error, SMTPResponseException):
        said = f"can't be reached, or broke off ({error})"
        return MailFault(said, is_lasting=False, is_of_all=True)
    answer = f"({error.smtp_code} {_words(error.smtp_error)})"
    if error.smtp_code < _FOR_GOOD:
        said = f"takes no mail for now {answer}"
        return MailFault(said, is_lasting=False, is_of_all=True)
    if isinstance(error, SMTPDataError) or error.smtp_code == _TOO_LARGE:
        said = f"refuses the mail for good {answer}"
        return MailFault(said, is_lasting=True, is_of_all=False)
    said = f"refuses every mail {answer}: correct NESCIO_MAIL_URL"
    if isinstance(error, SMTPSenderRefused):
        sender = settings.DEFAULT_FROM_EMAIL
        said = f"refuses the sender {sender} {answer}: correct NESCIO_MAIL_FROM"
    elif isinstance(error, SMTPAuthenticationError):
        said = f"refuses the sign-in {answer}: correct NESCIO_MAIL_URL"
    return MailFault(said, is_lasting=True, is_of_all=True)


def _words(answer: bytes | str) -> str:
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return _ADDRESS.sub("(address)", " ".join(text.split()))[:_MAX_WORDS]
