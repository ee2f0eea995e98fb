"""What keeps `up` from going on, told to the one who typed it."""


class UpError(Exception):
    """The system can not be started here and now; the message says why and the remedy."""
