"""The whole described interface under generated requests, good and bad, over HTTP."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.servers.basehttp import WSGIRequestHandler

from accounts.roles import Role
from accounts.services import create_token
from qa.answers import asking
from qa.models import Answer
from tests.factories import make_document, make_entries, make_knowledge_base, make_user

# What the schema can't say is that a row must exist, or that fields go together: naming
# one that doesn't, or giving what doesn't fit, is refused by 400.
_REFERRING = [
    "GET /api/v1/entries",
    "GET /api/v1/documents",
    "GET /api/v1/entries.csv",
    "POST /api/v1/entries",
    "POST /api/v1/imports",
    "PATCH /api/v1/entries/{entry_id}",
    "POST /api/v1/documents",
    "POST /api/v1/exports",
    "PATCH /api/v1/documents/{document_id}",
    "POST /api/v1/audiences",
    "PATCH /api/v1/audiences/{slug}",
    "GET /api/v1/conflicts",
    "GET /api/v1/entries/due",
    "POST /api/v1/conflicts/{conflict_id}/resolve",
    "POST /api/v1/proposals",
    "POST /api/v1/proposals/decide",
    "GET /api/v1/answers",
    "GET /api/v1/dashboard",
    "GET /api/v1/reviews",
    "POST /api/v1/ask",
    "POST /api/v1/reviews/samples",
    "PUT /api/v1/reviews/{review_id}/judgement",
    "POST /api/v1/tags",
    "PATCH /api/v1/tags/{slug}",
]


def configuration(parameters: dict[str, object]) -> str:
    """Return a configuration of schemathesis that fills in `parameters` as they are."""
    lines = ["[parameters]"]
    lines += [f'"path.{name}" = {value!r}' for name, value in parameters.items()]
    for operation in _REFERRING:
        lines += [
            "[[operations]]",
            f'include-name = "{operation}"',
            "checks.positive_data_acceptance.expected-statuses = "
            '["2xx", "400", "401", "403", "404", "409"]',
        ]
    return "\n".join(lines)


@pytest.fixture
def unthrottled(settings):
    rates = dict.fromkeys(["user", "ask", "login", "login_address"], "1000000/minute")
    settings.REST_FRAMEWORK = {
        **settings.REST_FRAMEWORK,
        "DEFAULT_THROTTLE_RATES": rates,
    }


@pytest.fixture
def no_nagle(monkeypatch):
    """Let the test server send its small answers at once, not 40 ms later."""
    monkeypatch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)


@pytest.mark.system
@pytest.mark.parametrize("role", [Role.AGENT, Role.CURATOR])
def test_no_generated_request_breaks_the_interface(
    role: Role, transactional_db, no_nagle, live_server, unthrottled, tmp_path: Path
):
    make_knowledge_base()
    document = make_document()
    entries = make_entries(["A new card costs 12 euros.", "Cards last four years."])
    user = make_user(role)
    asked = asking.ask(
        "Who won the cup in 1974?", asker=user, channel=Answer.Channel.API
    )
    secret = create_token(user=user).secret
    # An agent's requests name rows at random, a curator's name rows that there are.
    known = {
        "answer_id": str(asked.pk),
        "document_id": document.pk,
        "entry_id": entries[0].pk,
        "policy_id": asked.policy_id,
        "slug": "everyone",
    }
    config = tmp_path / "schemathesis.toml"
    config.write_text(configuration(known if role == Role.CURATOR else {}))

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file", str(config),
            "run", f"{live_server.url}/api/v1/schema",
            "--header", f"Authorization: Token {secret}",
            "--checks", "all",
            "--phases", "examples,coverage,fuzzing,stateful",
            "--max-examples", os.environ.get("NESCIO_FUZZ_EXAMPLES", "5"),
            "--seed", "1974",
            "--continue-on-failure",
            "--request-timeout", "30",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-30_000:] + done.stderr[-2_000:]
