"""Serve Nescio's tools by MCP over stdio to the program that starts this command."""

import argparse
import asyncio
import os
from typing import Any

import httpx2
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from mcp.server.stdio import stdio_server

from integrations.mcp.tools import Reply, make_server

TOKEN_VARIABLE = "NESCIO_TOKEN"  # noqa: S105  # names a variable
# Far longer than the slowest answer takes.
_SECONDS = 900.0


class Command(BaseCommand):
    help = (
        "Speak the Model Context Protocol on standard input and output, for a program "
        "that starts it. The tools ask a running Nescio over REST; NESCIO_TOKEN is the "
        "API token of the user who asks."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--url",
            default=settings.PUBLIC_URL,
            help="Address of the running Nescio (default: %(default)s).",
        )

    def handle(self, *, url: str, **_options: object) -> None:
        token = os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            raise CommandError(
                f"{TOKEN_VARIABLE} is not set; make a token on the page API tokens, or "
                "by manage.py create_token."
            )
        asyncio.run(_serve(url.rstrip("/"), token))


async def _serve(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=_SECONDS
    ) as client:

        async def rest(method: str, address: str, body: dict[str, Any]) -> Reply:
            sent = None if method == "GET" else body
            try:
                response = await client.request(method, address, json=sent)
                return response.status_code, response.json()
            except (httpx2.HTTPError, ValueError) as error:
                message = f"Nescio at {url} did not answer: {type(error).__name__}."
                return 503, {"error": {"code": "unavailable", "message": message}}

        server = make_server(rest)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
