import time

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from probes import bundled, bundled_encoder
from probes.exceptions import BundledModelError


class Command(BaseCommand):
    help = "Prepare the bundled models under the variable directory."

    def handle(self, **_options: object) -> None:
        began = time.monotonic()

        def show(doing: str, fraction: float) -> None:
            seconds = time.monotonic() - began
            self.stdout.write(f"[{fraction:4.0%}] {doing} ({seconds:.1f} s)")

        try:
            for model in (bundled, bundled_encoder):
                directory = model.prepare(settings.PLACES.models, progress=show)
                self.stdout.write(str(directory))
        except BundledModelError as error:
            raise CommandError(str(error)) from error
