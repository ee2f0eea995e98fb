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


def share(text: str) -> float:
    """Read a number in [0, 1].

    Raises:
        ArgumentTypeError: It is outside.
        ValueError: It is no number.
    """
    number = float(text)
    if not 0 <= number <= 1:
        msg = f"{text} is not between 0 and 1"
        raise argparse.ArgumentTypeError(msg)
    return number
