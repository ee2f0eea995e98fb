"""`manage.py train_probe`: the former name of `train probe`."""

from argparse import ArgumentParser
from typing import Any

from qa.management.commands import train


class Command(train.Command):
    help = "The same as `train probe`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add, *_ = train.KINDS["probe"]
        add(parser)

    def handle(self, **options: Any) -> None:
        super().handle(what="probe", **options)
