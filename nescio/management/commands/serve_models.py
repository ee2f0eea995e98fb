"""manage.py serve_models: embedder and verifier for web servers and workers elsewhere."""

from argparse import ArgumentParser
from ipaddress import ip_address
from typing import Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kb.embedding.embedder import BUNDLED, is_on_server, load_local
from nescio.web_server import Limits, listen, make_server, serve_until_signal
from qa.inference.verifier import load_local_verifier

# In addition to one for each queued request: these answer 503 if the queue is full.
_SPARE_THREADS: Final = 8
_MAX_BODY_BYTES: Final = 16 << 20
# Questions in one pass. A CPU computes them one after the other, so in a large batch
# all would wait for the last one.
_BATCH_ON_GPU, _BATCH_ON_CPU = 32, 4


class Command(BaseCommand):
    help = (
        "Serve the embedder and the verifier to web servers and workers whose "
        "NESCIO_MODEL_SERVICE_URL names this address, until it is stopped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=8100)

    def handle(self, *, host: str, port: int, **_: object) -> None:
        from nescio.model_service import ModelService  # noqa: PLC0415  # with torch
        from probes.language_model.loading import choose_device  # noqa: PLC0415

        if not settings.MODEL_SERVICE_KEY and not _is_this_machine(host):
            raise CommandError(
                f"Other machines can reach {host}: set NESCIO_MODEL_SERVICE_KEY, here "
                "and on its clients, or --host 127.0.0.1."
            )
        name = settings.EMBEDDING_MODEL
        # If the embedding model is on another server, this serves the bundled one,
        # which the verifier needs.
        embedder = load_local(BUNDLED if is_on_server(name) else name)
        device = choose_device(settings.MODEL_DEVICE)
        service = ModelService(
            embedder,
            None if settings.VERIFIER == "none" else load_local_verifier(),
            key=settings.MODEL_SERVICE_KEY,
            queue=settings.MODEL_SERVICE_QUEUE,
            batch=_BATCH_ON_CPU if device.type == "cpu" else _BATCH_ON_GPU,
        )
        server = make_server(
            service,
            listen(host, port),
            threads=settings.MODEL_SERVICE_QUEUE + _SPARE_THREADS,
            # There are few clients, each of which sends requests for many people.
            limits=Limits(
                unfinished_of_one=Limits().unfinished, body_bytes=_MAX_BODY_BYTES
            ),
        )
        self.stdout.write(f"The models are served on {host}:{port}, on {device}.")
        serve_until_signal(server)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
