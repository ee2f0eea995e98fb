"""Emails that jobs send to users."""

import logging
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage

from accounts.mail import fault_of
from jobs.exceptions import MailRefusedError, RetryableJobError

logger = logging.getLogger(__name__)


def mail_to(user: User, *, subject: str, body: str) -> bool:
    """Send an email; log and return False if the server rejects this one permanently.

    Raises:
        RetryableJobError: The mail server is down, or does not accept the mail for now.
        MailRefusedError: The server accepts no mail until the settings are corrected.
    """
    sender = settings.DEFAULT_FROM_EMAIL
    message = EmailMessage(subject, body, from_email=sender, to=[user.email])
    try:
        message.send()
    except (SMTPException, OSError) as error:
        fault = fault_of(error)
        said = f"The mail to user {user.pk} was not sent: the mail server {fault.said}."
        if not fault.is_lasting:
            raise RetryableJobError(said) from error
        if fault.is_of_all:
            raise MailRefusedError(said) from error
        # One rejected address must not keep the others waiting.
        logger.warning(said)
        return False
    return True
