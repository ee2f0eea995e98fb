"""The description of the interface, and the page that shows it."""

import json
import re

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from accounts.delegation import HEADER
from nescio.exception_handler import error_codes

REFERENCE = settings.BASE_DIR / "docs/reference/errors.md"


@pytest.fixture(scope="module")
def schema():
    return SchemaGenerator().get_schema(request=None, public=True)


def operations(schema):
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


@pytest.mark.slow
def test_the_description_is_valid_and_without_a_warning(tmp_path):
    call_command(
        "spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "s.yml")
    )


def test_every_operation_says_what_it_does_and_what_can_go_wrong(schema):
    found = operations(schema)

    assert len(found) >= 30
    for name, operation in found:
        assert operation["summary"], name
        assert operation["description"], name
        assert {"401", "403", "429", "503"} <= operation["responses"].keys(), name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= operation["responses"].keys(), name
        if "{" in name:
            assert "404" in operation["responses"], name


def test_every_write_says_that_it_may_conflict(schema):
    for name, operation in operations(schema):
        if not name.startswith("GET"):
            assert "409" in operation["responses"], name


def test_what_returns_a_row_is_not_described_as_empty(schema):
    reopened = schema["paths"]["/api/v1/votes/{vote_id}/handled"]["delete"]

    assert "200" in reopened["responses"]
    assert "204" not in reopened["responses"]


def test_what_makes_a_row_links_to_what_takes_it(schema):
    made = schema["paths"]["/api/v1/entries"]["post"]["responses"]["201"]
    asked = schema["paths"]["/api/v1/ask"]["post"]["responses"]["200"]
    listed = schema["paths"]["/api/v1/gaps"]["get"]["responses"]["200"]
    exporting = schema["paths"]["/api/v1/exports"]["post"]["responses"]["202"]

    assert made["links"]["entries_verify"]["parameters"] == {
        "entry_id": "$response.body#/id"
    }
    assert "answers_read" in asked["links"]
    assert listed["links"]["gaps_draft"]["parameters"] == {
        "gap_id": "$response.body#/results/0/id"
    }
    assert {"jobs_cancel", "exports_file"} <= exporting["links"].keys()


def test_what_takes_a_row_is_linked_to_from_where_rows_are(schema):
    linked = {
        name
        for _, operation in operations(schema)
        for response in operation["responses"].values()
        for name in response.get("links", ())
    }

    taking = {op["operationId"] for name, op in operations(schema) if "{" in name}
    assert linked == taking


def test_no_text_may_hold_what_no_column_can(schema):
    changes = schema["components"]["schemas"]["PatchedEntryChangesRequest"]
    text, reason = (changes["properties"][name] for name in ("text", "reason"))

    assert re.search(text["pattern"], "  one\nline")
    assert re.search(reason["pattern"], "")
    for nothing in ("", " \n", "\x1c", "a\0"):
        assert not re.search(text["pattern"], nothing)
    assert not re.search(reason["pattern"], "a\0")


def test_no_body_may_hold_a_key_that_is_no_field(schema):
    bodies = {
        name: described
        for name, described in schema["components"]["schemas"].items()
        if name.endswith("Request")
    }

    assert "NewEntryRequest" in bodies
    for name, described in bodies.items():
        assert described["additionalProperties"] is False, name


def test_every_error_has_the_one_shape_and_difys_two_fields_more(schema):
    shape = {"$ref": "#/components/schemas/Error"}
    for name, operation in operations(schema):
        for status, response in operation["responses"].items():
            if status >= "400":
                named = response.get("$ref", "").rpartition("/")[2]
                whole = schema["components"]["responses"][named] if named else response
                said = whole["content"]["application/json"]["schema"]
                if name == "POST /dify/retrieval":
                    said, more = said["allOf"]
                    assert more["required"] == ["error_code", "error_msg"]
                assert said == shape, name


def test_every_error_code_is_in_the_description_and_in_the_reference(schema):
    listed = re.findall(r"^\| `(\w+)` \| (\d+) \| .+ \|$", REFERENCE.read_text(), re.M)
    components = schema["components"]["schemas"]
    code = components["Error"]["properties"]["error"]["properties"]["code"]

    assert dict(listed) == {name: str(status) for name, status in error_codes().items()}
    assert len(listed) == len(error_codes()) > 100
    assert components["ErrorCode"]["enum"] == [*error_codes()]
    # Open: a client that was made of it reads the codes of later versions too.
    assert {"type": "string"} in code["anyOf"]


def test_a_token_is_described_as_bearer_and_in_its_own_word(schema):
    schemes = schema["components"]["securitySchemes"]

    assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == (
        "http",
        "bearer",
    )
    assert schemes["token"]["name"] == "Authorization"
    asking = schema["paths"]["/api/v1/ask"]["post"]["security"]
    assert {"bearer": []} in asking
    assert {"token": []} in asking


def test_what_may_be_done_for_another_takes_the_header_that_names_them(schema):
    taking = {
        name
        for name, operation in operations(schema)
        if any(each["name"] == HEADER for each in operation.get("parameters", ()))
    }

    assert {"POST /api/v1/ask", "GET /api/v1/answers", "GET /api/v1/entries"} <= taking
    assert {"POST /v1/chat/completions", "POST /dify/retrieval"} <= taking
    for own in ("POST /api/v1/entries", "GET /api/v1/gaps", "GET /api/v1/tokens"):
        assert own not in taking


def test_what_is_left_of_the_rate_is_described(schema):
    asked = schema["paths"]["/api/v1/ask"]["post"]["responses"]["200"]["headers"]

    assert {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} <= asked.keys()
    for each in asked.values():
        assert each["$ref"].rpartition("/")[2] in schema["components"]["headers"]


def test_the_events_of_a_stream_are_named(schema):
    content = schema["paths"]["/api/v1/ask"]["post"]["responses"]["200"]["content"]
    event = content["text/event-stream"]["schema"]["properties"]["event"]

    assert event["enum"] == ["stage", "decision", "message", "end", "error"]


def test_it_names_its_servers_and_shows_how_to_ask_and_vote(schema, settings):
    assert [server["url"] for server in schema["servers"]] == ["/", settings.PUBLIC_URL]
    for address, method in (
        ("/api/v1/ask", "post"),
        ("/api/v1/search", "post"),
        ("/api/v1/answers/{answer_id}/vote", "put"),
    ):
        content = schema["paths"][address][method]["requestBody"]["content"]
        assert content["application/json"]["examples"], address


def test_operations_have_names_of_their_own(schema):
    names = [operation["operationId"] for _, operation in operations(schema)]

    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)  # modules of generated clients


def test_asking_is_described_as_json_and_as_an_event_stream(schema):
    content = schema["paths"]["/api/v1/ask"]["post"]["responses"]["200"]["content"]

    assert set(content) == {"application/json", "text/event-stream"}


def test_signing_in_needs_no_credentials_and_all_else_does(schema):
    without = [
        n for n, operation in operations(schema) if not operation.get("security")
    ]

    assert without == ["POST /api/v1/tokens"]


def test_the_schema_is_served_as_json_and_yaml(db):
    client = Client()

    as_json = client.get("/api/v1/schema", {"format": "json"})
    as_yaml = client.get("/api/v1/schema")

    assert json.loads(as_json.content)["info"]["title"] == "Nescio"
    assert as_yaml.content.startswith(b"openapi: 3")


def test_the_description_is_the_same_whoever_reads_it_first(db):
    ask = Client().get

    german = ask("/api/v1/schema", headers={"Accept-Language": "de"})
    again = ask("/api/v1/schema", {"lang": "en"})
    refused = ask("/api/v1/schema", headers={"Accept": "image/png"})

    assert again.content == german.content
    assert b"Legt fest" not in german.content
    assert refused.status_code == 406
    assert "openapi" not in refused.content.decode()


def test_the_documents_page_runs_no_inline_script(db):
    client = Client()

    page = client.get("/api/v1/docs")
    script = client.get("/api/v1/docs", {"script": ""})

    policy = page["Content-Security-Policy"]
    scripts = policy.split("script-src")[1].split(";")[0]
    assert "unsafe" not in scripts
    assert "<script>" not in page.content.decode()
    assert b"SwaggerUIBundle({" in script.content
    assert script["Content-Type"] == "application/javascript"
