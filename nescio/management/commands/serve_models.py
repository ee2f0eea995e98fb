"""manage.py serve_models: embedder and verifier for web servers and workers elsewhere."""

import signal
import threading
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand

from kb.embedding.embedder import load_local
from nescio.web_server import Limits, listen, make_server
from qa.inference.verifier import load_local_verifier

# Beside those that compute or wait: they answer 503 to what is beyond the queue.
_SPARE_THREADS = 8


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

        listener = listen(host, port)
        verifier = None if settings.VERIFIER == "none" else load_local_verifier()
        service = ModelService(
            load_local(settings.EMBEDDING_MODEL),
            verifier,
            key=settings.MODEL_SERVICE_KEY,
            queue=settings.MODEL_SERVICE_QUEUE,
        )
        end = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: end.set())
        server = make_server(
            service,
            listener,
            threads=settings.MODEL_SERVICE_QUEUE + _SPARE_THREADS,
            # Few addresses ask, each for many people.
            limits=Limits(unfinished_of_one=Limits().unfinished),
        )
        self.stdout.write(f"The models are served on {host}:{port}.")
        server.serve(end)
