"""The whole described interface under generated requests, good and bad, over HTTP.

The suite sends a few of each operation as every role. About 5,000 as each, which follow from
the schema, follow its links, or are drawn at random, N of these for each operation:

    pytest tests/nescio/test_schema_fuzzing.py --fuzz-examples N
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.contrib.auth.models import User
from django.core.servers.basehttp import WSGIRequestHandler
from django.db import connection
from drf_spectacular.generators import SchemaGenerator

from accounts import idempotency
from accounts.acting import as_owner
from accounts.delegation import HEADER
from accounts.roles import Role
from accounts.services import create_token
from integrations.events.services import send_test
from integrations.models import Endpoint
from kb.models import Section, Tag
from qa.answers import asking
from qa.answers.api import EXAMPLE
from qa.gaps.escalations import escalate
from qa.models import Answer, Vote
from tests.factories import make_tag, make_user
from tests.nescio.test_leak_matrix import make_secret
from tests.qa.reviews.review_rows import make_review

# What the schema can't say is that fields go together, which characters are no text of
# knowledge, or what a file must hold: giving what doesn't fit is refused by 400.
_FITTING = [
    "GET /api/v1/entries/due",
    "GET /api/v1/entries.csv",
    "POST /api/v1/ask",
    "POST /api/v1/search",
    "POST /api/v1/entries",
    "PATCH /api/v1/entries/{entry_id}",
    "DELETE /api/v1/entries/{entry_id}",
    "POST /api/v1/entries/{entry_id}/flag",
    "POST /api/v1/entries/{entry_id}/restore",
    "POST /api/v1/entries/{entry_id}/retire",
    "POST /api/v1/entries/{entry_id}/verify",
    "POST /api/v1/entries/{entry_id}/revisions/{number}/restore",
    "POST /api/v1/documents",
    "PATCH /api/v1/documents/{document_id}",
    "POST /api/v1/imports",
    "POST /api/v1/sources",
    "POST /api/v1/synonyms",
    "PATCH /api/v1/sources/{source_id}",
    "POST /api/v1/audiences",
    "PATCH /api/v1/audiences/{slug}",
    "POST /api/v1/synonyms",
    "POST /api/v1/tags",
    "PATCH /api/v1/tags/{slug}",
    "POST /api/v1/proposals",
    "POST /api/v1/proposals/decide",
    "POST /api/v1/conflicts/{conflict_id}/resolve",
    "POST /api/v1/gaps/{gap_id}/draft",
    "POST /api/v1/gaps/{gap_id}/propose",
    "POST /api/v1/escalations/{escalation_id}/reply",
    "POST /api/v1/reviews/samples",
    "PUT /api/v1/answers/{answer_id}/vote",
    "PUT /api/v1/reviews/{review_id}/judgement",
    "POST /api/v1/policies",
    "POST /api/v1/policies/{policy_id}/activate",
    "POST /api/v1/policies/{policy_id}/roll-back",
    "POST /api/v1/webhooks",
    "PATCH /api/v1/webhooks/{endpoint_id}",
    "GET /api/v1/webhook-deliveries",
    "POST /api/v1/synonyms",
    "POST /api/v1/users",
    "PATCH /api/v1/users/{username}",
    "POST /api/v1/users/{username}/erase",
    "POST /v1/chat/completions",
    "POST /dify/retrieval",
]
_TAKING_ANY_NAME = tuple(f"/api/v1/{rows}" for rows in ("gaps", "reviews", "votes"))
# A wrong slug that is accepted after all would name a row that requests think isn't there.
_NAMING_NEW = {"POST /api/v1/audiences", "POST /api/v1/tags"}

ANONYMOUS, SUPERUSER = "anonymous", "superuser"
# These name rows that there are; the others follow the schema's links to them.
_NAMING = {Role.SME, Role.CURATOR, Role.ADMIN}
_ALL_PHASES = "examples,coverage,fuzzing,stateful"


def configuration(parameters: dict[str, object]) -> str:
    """Return a configuration of schemathesis that fills in `parameters` as they are."""
    # Another revision than the one that is named is no bad request.
    negative = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415"]
    lines = [f"checks.negative_data_rejection.expected-statuses = {negative!r}"]
    lines += ["[parameters]"]
    lines += [f'"path.{name}" = {value!r}' for name, value in parameters.items()]
    for operation in _FITTING:
        lines += [
            "[[operations]]",
            f'include-name = "{operation}"',
            "checks.positive_data_acceptance.expected-statuses = "
            '["2xx", "400", "401", "403", "404", "409"]',
        ]
        if operation in _NAMING_NEW:
            lines.append('generation.mode = "positive"')
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
@pytest.mark.parametrize("role", [ANONYMOUS, *Role, SUPERUSER])
def test_no_generated_request_breaks_the_interface(
    role: str,
    transactional_db,
    no_nagle,
    live_server,
    unthrottled,
    tmp_path: Path,
    pytestconfig,
    record_property,
):
    user = (
        User.objects.create_superuser("root")
        if role == SUPERUSER
        else make_user(Role(role) if role != ANONYMOUS else None, groups=["vault"])
    )
    made = rows(user)
    # After a request that revoked its own token, all others would be anonymous.
    named = made if role in _NAMING else {"token_id": made["token_id"]}
    config = tmp_path / "schemathesis.toml"
    config.write_text(configuration(named))
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(schema_of(made), default=str))
    examples = pytestconfig.getoption("--fuzz-examples")
    if examples:  # a server has its models loaded before it is asked
        asking.ask(EXAMPLE, asker=user, channel=Answer.Channel.API)
    secret = create_token(user=user, may_manage_users=True).secret
    signed_in = ["--header", f"Authorization: Token {secret}"]

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "--config-file", str(config),
            "run", str(schema),
            "--url", live_server.url,
            *([] if role == ANONYMOUS else signed_in),
            "--checks", "all",
            "--phases", _ALL_PHASES if examples else "fuzzing",
            "--max-examples", str(examples or 1),
            "--seed", "1974",
            "--continue-on-failure",
            "--request-timeout", "30",
            "--no-color",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )  # fmt: skip

    # An enumeration is nothing that another process can be sent.
    record_property(f"{role}", f"Generated requests, {role}: {_counted(done.stdout)}")
    assert done.returncode == 0, done.stdout[-30_000:] + done.stderr[-2_000:]
    if role == SUPERUSER:  # no request of the run took its own token away
        request = Request(
            f"{live_server.url}/api/v1/entries",
            headers={"Authorization": f"Token {secret}"},
        )
        with urlopen(request, timeout=30) as response:
            assert response.status == HTTPStatus.OK


def _counted(output: str) -> str:
    found = [
        re.search(pattern, output)
        for pattern in (r"\d+ generated.*", r"API Links: +(\d+ covered)")
    ]
    counts = [match[match.lastindex or 0] for match in found if match]
    return ", links ".join(counts) or "none"


def rows(user: User) -> dict[str, object]:
    """Make a row for each parameter of an address; requests change and delete them."""
    with as_owner("tests"), connection.cursor() as cursor:
        # No number that is drawn at random is the id of a row.
        cursor.execute(
            "select setval(oid::regclass, 7654321) from pg_class "
            "where relkind = 'S' and relname ~ '^(kb|qa)_'"
        )
    make_tag("vault")
    make_tag("retail", facet=Tag.Facet.LINE_OF_BUSINESS)
    made = make_secret()
    answered = asking.ask(
        "Who won the cup in 1974?", asker=user, channel=Answer.Channel.API
    )
    vote = Vote.objects.create(answer=answered, user=user, is_up=False)
    # Nothing is posted to a private address.
    endpoint = Endpoint.objects.create(
        name="CRM", url="https://127.0.0.1/", owner=user, types=["gap.opened"]
    )
    return {
        "answer_id": str(answered.pk),
        "conflict_id": made.conflict.pk,
        "delivery_id": send_test(endpoint.pk, by=user).pk,
        "document_id": made.document.pk,
        "endpoint_id": endpoint.pk,
        "entry_id": made.entry.pk,
        "escalation_id": escalate(answered.pk, user=user).pk,
        "gap_id": made.gap.pk,
        "import_id": made.imported.pk,
        "number": 1,
        "policy_id": answered.policy_id,
        "proposal_id": made.proposal.pk,
        "review_id": make_review().pk,
        "slug": "vault",
        "token_id": str(create_token(user=make_user()).row.pk),
        "vote_id": vote.pk,
    }


def schema_of(made: dict[str, object]) -> dict[str, Any]:
    """Return the schema that says which rows there are, where ours says they must be."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    for methods in schema["paths"].values():
        for operation in methods.values():
            # A key drawn twice would let no request past it.
            operation["parameters"] = [
                each
                for each in operation.get("parameters", ())
                if each["name"] != idempotency.HEADER
            ]
    expert = make_user(Role.SME, username="expert", groups=["vault"])
    entry = made["entry_id"]
    for methods in schema["paths"].values():
        for operation in methods.values():
            # With it all that this token may do would be refused.
            taken = operation.get("parameters", [])
            taken[:] = [each for each in taken if each["name"] != HEADER]
    there: dict[str, list[object]] = {
        "answering_entry": [entry],
        "audience": ["everyone", "vault"],
        "cursor": ["bz0w", "cj0x"],  # the first page, and the last
        "document": [made["document_id"]],
        "entry": [entry],
        "evidence_used": [entry],
        "experts": [expert.username],
        "groups": ["vault"],
        "If-Match": ["*"],
        "ids": [made["proposal_id"]],
        "keep": [entry],
        "knowledge_base": ["cards"],
        "line_of_business": ["retail"],
        "knowledge_id": ["cards"],
        "model": ["cards"],
        "owner": [expert.username],
        "product_line": ["vault"],
        "section": [Section.objects.get().pk],
        "tag": ["vault", "retail"],
        "tags": ["vault", "retail"],
    }
    for name, field in fields(schema):
        if name == "slug":
            field["pattern"] = "^new-[a-z]{5,9}$"
        elif name in there and "$ref" not in field and "allOf" not in field:
            one = field["items"] if field["type"] == "array" else field
            one.pop("pattern", None)
            one["enum"] = [*there[name], *([None] if one.get("nullable") else [])]
            if "default" in one:
                one["enum"].append(one["default"])
    return schema


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and description of what requests are made of."""
    for address, methods in schema["paths"].items():
        # These lists take any name, and are empty for one that is nobody's.
        is_lenient = address.startswith(_TAKING_ANY_NAME)
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                if parameter["in"] != "path" and (not is_lenient or name == "cursor"):
                    yield name, parameter["schema"]
    for name, described in schema["components"]["schemas"].items():
        if name.endswith("Request"):
            yield from described.get("properties", {}).items()
