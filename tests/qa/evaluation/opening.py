"""Suites that ask the product, opened for their tests."""

from typing import Any

from qa.evaluation.question_suite import AskedSuite
from qa.evaluation.suites.registry import Joined, open_suite


def asked_suite(name: str, **options: Any) -> AskedSuite:
    """Open one suite of the kind whose cases and knowledge base are there to be read."""
    suite = open_suite(name, **options)
    assert isinstance(suite, AskedSuite)
    return suite


def joined_suite(names: str, **options: Any) -> Joined:
    """Open several suites as one."""
    suite = open_suite(names, **options)
    assert isinstance(suite, Joined)
    return suite
