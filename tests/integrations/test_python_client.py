"""The generated Python client, by the examples of its own how-to."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings

from accounts.services import create_token
from tests.factories import make_entry, make_user

GENERATED = settings.BASE_DIR / "nescio-client"
HOW_TO = settings.BASE_DIR / "docs/how-to/use-the-python-client.md"

pytestmark = pytest.mark.skipif(
    not GENERATED.is_dir(), reason="the client is not generated: make client"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", HOW_TO.read_text(), re.M | re.S)


@pytest.mark.slow
def test_the_how_tos_examples_print_what_it_says(transactional_db, live_server):
    make_entry("It costs 12 euros.", question="What does a replacement card cost?")
    token = create_token(user=make_user()).secret

    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        env={
            **os.environ,
            "PYTHONPATH": str(GENERATED),
            "NESCIO_URL": live_server.url,
            "NESCIO_TOKEN": token,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout == "".join(blocks("text"))


def test_every_operation_of_the_interface_has_a_module():
    from drf_spectacular.generators import SchemaGenerator

    described = SchemaGenerator().get_schema(request=None, public=True)
    named = {
        operation["operationId"]
        for methods in described["paths"].values()
        for operation in methods.values()
    }
    there = {file.stem for file in GENERATED.glob("nescio_client/api/*/*.py")}

    assert len(named) > 90
    assert named - there == set()
