"""Which models worked, for how long, over how many tokens and at what cost."""

import os
import subprocess
import sys

import pytest
from django.conf import settings as configured
from django.urls import reverse

from accounts.roles import Role
from kb.embedding.services import active_model
from qa.dashboard.counting import count_days
from qa.dashboard.model_use import ModelUse, read_model_use
from qa.dashboard.models import DailyModel
from qa.dashboard.traffic import Scope, last_days
from tests.factories import make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

WRITER, VERIFIER = "w" * 64, "v" * 64
Kind = DailyModel.Kind


def written(read: int = 400, tokens: int = 20, generate: float = 800.0, **fields):
    values = {
        "embedder": active_model().fingerprint,
        "language_model": WRITER,
        "probes": f"{'p' * 64} {VERIFIER}",
        "generation": {"prompt_tokens": read, "answer_tokens": tokens},
        "milliseconds": {
            "retrieve": 9.0, "retrieve.embed": 8.0, "verify": 50.0,
            "generate": generate,
        },
    }  # fmt: skip
    return make_answer(make_user(), **{**values, **fields})


def use() -> dict[Kind, ModelUse]:
    count_days()
    return {each.kind: each for each in read_model_use(Scope(last_days(7)))}


def test_each_model_has_its_own_part_of_an_answer():
    for _ in range(3):
        written()
    written(generate=8_000.0, read=1_000, tokens=30)

    found = use()

    assert {kind: each.answers for kind, each in found.items()} == {
        Kind.EMBEDDER: 4, Kind.VERIFIER: 4, Kind.LANGUAGE_MODEL: 4,
    }  # fmt: skip
    writer = found[Kind.LANGUAGE_MODEL]
    assert (writer.tokens_read, writer.tokens_written) == (2_200, 90)
    assert writer.latency.p50 == pytest.approx(800, rel=0.051)
    assert writer.latency.p95 == pytest.approx(8_000, rel=0.051)
    assert found[Kind.VERIFIER].fingerprint == VERIFIER
    assert found[Kind.EMBEDDER].name == "bundled"


def test_a_refusal_before_any_model_wrote_names_the_embedder_alone():
    make_answer(
        make_user(), embedder="e" * 64, milliseconds={"retrieve.embed": 8.0},
        probes="p" * 64,
    )  # fmt: skip

    assert list(use()) == [Kind.EMBEDDER]


def test_what_a_model_drafted_by_itself_counts_apart():
    own = {"fingerprint": "o" * 64}
    times = {"boundary": 100.0, "recall": 300.0}
    written(boundary=own, language_model="", milliseconds=times, probes="")
    written(boundary=own, milliseconds={**times, "generate": 50.0}, probes="")

    found = use()

    knows, reads = found[Kind.OWN_KNOWLEDGE], found[Kind.LANGUAGE_MODEL]
    assert (knows.answers, knows.tokens_read) == (2, 400)
    assert (reads.answers, reads.tokens_read) == (1, 400)
    assert knows.latency.p50 == pytest.approx(400, rel=0.051)


def test_tokens_cost_what_the_model_or_its_fingerprint_is_priced_at(settings):
    settings.TOKEN_PRICES = {"bundled": (2.0, 10.0)}
    written(read=1_000_000, tokens=100_000)
    found = use()
    assert found[Kind.LANGUAGE_MODEL].cost == pytest.approx(3.0)
    assert found[Kind.EMBEDDER].name == "bundled"
    assert (found[Kind.EMBEDDER].cost, found[Kind.VERIFIER].cost) == (None, None)

    settings.TOKEN_PRICES = {WRITER[:12]: (1.0, 0.0)}
    assert use()[Kind.LANGUAGE_MODEL].cost == pytest.approx(1.0)


def test_of_a_model_in_a_directory_the_directorys_name_is_shown(settings):
    settings.LANGUAGE_MODEL = "/srv/models/fine-tuned"
    settings.TOKEN_PRICES = {"/srv/models/fine-tuned": (1.0, 1.0)}
    written(read=1_000_000, tokens=0)

    model = use()[Kind.LANGUAGE_MODEL]

    assert (model.name, model.cost) == ("fine-tuned", 1.0)


def test_the_page_has_a_column_of_costs_where_a_price_is_known(enter, settings):
    written(read=1_000_000, tokens=100_000)
    count_days()
    client = enter(Role.SME)
    page = client.get(reverse("dashboard")).content.decode()
    assert "Models: time and tokens" in page
    assert ">Cost<" not in page

    settings.TOKEN_PRICES = {"bundled": (2.0, 10.0)}

    page = client.get(reverse("dashboard")).content.decode()
    assert ">Cost<" in page
    assert "<td>1,000,000</td><td>100,000</td><td>3.00</td>" in page


def test_rest_tells_models_by_fingerprint(enter):
    written()
    count_days()

    got = enter(Role.SME).get(reverse("api_dashboard")).json()["models"]

    assert [(each["kind"], each["tokens_read"], each["cost"]) for each in got] == [
        ("embedder", 0, None), ("verifier", 0, None), ("language_model", 400, None),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["gpt=1", "=1/2", "gpt=one/2", "gpt=-1/2"])
def test_prices_that_can_not_be_read_are_refused_with_the_remedy(text):
    ran = subprocess.run(
        [sys.executable, "-c", "import nescio.settings"],
        cwd=configured.BASE_DIR,
        env={**os.environ, "NESCIO_TOKEN_PRICES": text},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode
    assert f"NESCIO_TOKEN_PRICES has {text!r}; write MODEL=READ/WRITTEN" in ran.stderr
