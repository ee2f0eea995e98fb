"""Mails that jobs send to users."""

import logging
from smtplib import SMTPException, SMTPRecipientsRefused

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage

from jobs.exceptions import RetryableJobError

logger = logging.getLogger(__name__)

_FOR_GOOD = 500  # SMTP's codes from here on; below, it may be tried again


def mail_to(user: User, *, subject: str, body: str) -> bool:
    """Send a mail; False, and logged, where the server refuses the address for good.

    Raises:
        RetryableJobError: The mail server did not accept it.
    """
    sender = settings.DEFAULT_FROM_EMAIL
    message = EmailMessage(subject, body, from_email=sender, to=[user.email])
    try:
        message.send()
    except SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        if any(code < _FOR_GOOD for code in codes):  # a full box, or greylisting
            raise RetryableJobError(
                f"The mail server refused the address of user {user.pk} for now."
            ) from error
        # No reason to keep all others waiting.
        logger.warning("The mail server refuses the address of user %d.", user.pk)
        return False
    except (SMTPException, OSError) as error:
        raise RetryableJobError(
            f"The mail to user {user.pk} could not be sent: {error}"
        ) from error
    return True
