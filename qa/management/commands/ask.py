"""Ask a question from the command line and see how it was decided."""

import argparse
import sys

from django.core.management.base import BaseCommand, CommandError
from rest_framework.renderers import JSONRenderer
from rich.console import Console

from accounts.acting import acting_for
from accounts.exceptions import NescioError, UnavailableError
from qa.answers.asking import ask, find_knowledge_base
from qa.answers.models import Answer, fetch_evidence
from qa.answers.serializers import as_json
from qa.management.answer_view import print_answer
from qa.management.base import find_asker

ANSWERED, REFUSED, BAD_INPUT, UNAVAILABLE = range(4)


class Command(BaseCommand):
    """`manage.py ask`: the same code path as REST and the ask page."""

    help = (
        "Ask a question and print the answer or the refusal, the evidence, and every "
        "gate with its value and threshold. Exit code: 0 answered, 1 refused, 2 the "
        "question, user or knowledge base is not valid, 3 a model or server is down "
        "(the question is kept)."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument(
            "--as",
            dest="username",
            default="",
            metavar="USER",
            help="Who asks, and so what may be seen; the first superuser by default.",
        )
        parser.add_argument(
            "--knowledge-base",
            default="",
            metavar="SLUG",
            help="The knowledge base to ask; the oldest one by default.",
        )
        parser.add_argument(
            "--language", default=None, help="Of the wording: en, de or xx."
        )
        parser.add_argument(
            "--json", action="store_true", help="Print the answer as REST returns it."
        )

    def handle(
        self,
        *,
        question: str,
        username: str,
        knowledge_base: str,
        language: str | None,
        json: bool,
        **_options: object,
    ) -> None:
        try:
            asker = find_asker(username)
            with acting_for(asker):
                answer = ask(
                    question,
                    asker=asker,
                    knowledge_base=find_knowledge_base(knowledge_base),
                    language=language,
                    channel=Answer.Channel.COMMAND,
                )
        except UnavailableError as error:
            raise CommandError(str(error), returncode=UNAVAILABLE) from error
        except NescioError as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from error
        if json:
            fetch_evidence(answer, asker)
            shown = JSONRenderer().render(as_json(answer), "application/json; indent=2")
            self.stdout.write(shown.decode())
        else:
            print_answer(answer, asker, Console(file=self.stdout))  # type: ignore[arg-type]  # a text stream but by name
        if answer.outcome != Answer.Outcome.ANSWERED:
            sys.exit(REFUSED)
