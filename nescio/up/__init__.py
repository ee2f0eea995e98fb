"""`manage.py up`: the whole system as one command; `session` is the order of events."""


# What keeps `up` from going on, shown to the one who typed it.


class UpError(Exception):
    """The system cannot be started here and now; the message says why and the remedy."""
