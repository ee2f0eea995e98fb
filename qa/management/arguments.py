"""What several commands take on the command line."""

import argparse


def positive(text: str) -> int:
    """Read an integer of at least 1.

    Raises:
        ArgumentTypeError: It is less.
        ValueError: It is no integer.
    """
    number = int(text)
    if number < 1:
        msg = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(msg)
    return number
