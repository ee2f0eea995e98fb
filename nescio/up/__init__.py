"""`manage.py up`: the whole system as one command; `session` runs its steps."""


class UpError(Exception):
    """The system cannot be started here and now; the message says why and the remedy."""
