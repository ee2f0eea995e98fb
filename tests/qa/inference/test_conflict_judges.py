"""The judges of pairs: a model in reach, a server, and the nightly job with either."""

import json

import pytest
from django.core.management import call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.conflicts import background as conflict_job
from kb.conflicts.finding import find_entry_conflicts, pending_entries
from kb.conflicts.judgement import judge
from kb.conflicts.values import Judge, Kind, Opinion, Statement, Unsure, with_opinion
from kb.models import Conflict
from qa.inference.configured import configured_judge, load_judge
from qa.inference.judges import ServerJudge, WhiteBoxJudge, read_verdict
from qa.inference.server import ServerLanguageModel
from tests.factories import make_entries
from tests.probes import tiny_models
from tests.qa.inference.language_server import completion, failure, running
from workers.registry import HANDLERS

pytestmark = pytest.mark.slow

# The signals see the opposites, and are unsure whether the matter is one.
ONE = "Prescriptions are sent to the pharmacy before the visit."
OTHER = "A prescription goes to your pharmacist after the visit."
PAIR = (Statement(ONE), Statement(OTHER))
AGAINST = {"duplicate": 0.02, "contradiction": 0.96, "different": 0.02}
APART = {"duplicate": 0.02, "contradiction": 0.02, "different": 0.96}
DISTANCE = 0.6


def server_judge(server) -> Judge:
    return ServerJudge(
        ServerLanguageModel(
            url=server.url, key="", model="m", timeout_seconds=10, retries=0
        )
    )


@pytest.fixture
def served(settings):
    """Return a function that makes a server's address the judge of the settings."""

    def use(server) -> None:
        settings.CONFLICT_JUDGE = "language-model"
        settings.LANGUAGE_SERVER_URL = server.url
        settings.LANGUAGE_SERVER_RETRIES = 0
        settings.LANGUAGE_MODEL = "m"

    return use


@pytest.fixture
def unsure():
    """Return two entries on which the signals are unsure."""
    found = make_entries([ONE, OTHER])
    assert find_entry_conflicts(found[0].pk, is_complete=False) == ()
    return found


def run_search():
    job = enqueue("kb.find_conflicts", {})
    run_job(job.pk, HANDLERS)
    job = Job.objects.get(pk=job.pk)
    assert job.state == Job.State.SUCCEEDED, job.error
    return job.result


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_random_weights_give_probabilities_that_no_order_changes(family):
    found = WhiteBoxJudge(tiny_models.model(family, context_length=4096))

    first, swapped, other = found.weigh([PAIR, PAIR[::-1], (PAIR[0], PAIR[0])])

    for opinion in (first, swapped, other):
        assert sum(map(opinion.of, Kind)) == pytest.approx(1)
        assert all(0 <= opinion.of(kind) <= 1 for kind in Kind)
        assert opinion.fingerprint == found.fingerprint
    assert first.contradiction == pytest.approx(swapped.contradiction, abs=1e-4)
    assert found.weigh([]) == []


def test_the_bundled_model_judges_a_few_pairs():
    same = Statement("The Gold card costs 72 euros a year.")
    opinions = load_judge().weigh([PAIR, (same, same)])

    assert [sum(map(o.of, Kind)) for o in opinions if o] == pytest.approx([1, 1])
    assert opinions[0] != opinions[1]


def test_a_server_is_asked_by_schema_with_questions_and_read():
    asked = Statement("Yes.", question="Is it free?"), PAIR[1]
    with running(completion(AGAINST)) as server:
        found = server_judge(server)
        (opinion,) = found.weigh([asked])

    assert opinion == Opinion(**AGAINST, name=found.name, fingerprint=found.fingerprint)
    (sent,) = server.requests
    schema = sent["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["duplicate", "contradiction", "different"]
    assert "First note: Is it free? Yes." in sent["messages"][1]["content"]


@pytest.mark.parametrize(
    "reply",
    [
        "a contradiction, surely", {"contradiction": 1.0}, AGAINST | {"more": 0},
        AGAINST | {"duplicate": "0.02"}, AGAINST | {"different": True},
        {"duplicate": 1, "contradiction": 1, "different": 0},
        '{"duplicate": NaN, "contradiction": 0.5, "different": 0.5}',
        '{"duplicate": -1, "contradiction": 1, "different": 1}',
    ],
)  # fmt: skip
def test_a_malformed_verdict_is_none_after_one_repair(reply):
    with running(completion(reply)) as server:
        assert server_judge(server).weigh([PAIR]) == [None]

    assert len(server.requests) == 2


@settings(max_examples=50, deadline=None)
@given(
    st.text()
    | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_no_reply_upsets_the_reader(reply):
    assert read_verdict(reply) is None


def test_a_language_model_is_asked_where_the_signals_are_unsure():
    judged = judge(*PAIR, distance=DISTANCE)
    assert Unsure().holds(judged)

    against = with_opinion(judged, Opinion(**AGAINST, name="m", fingerprint="f"))
    apart = with_opinion(judged, Opinion(**APART, name="m", fingerprint="f"))

    assert (against.kind, apart.kind) == (Kind.CONTRADICTION, Kind.DIFFERENT)
    assert against.score == against.probabilities[Kind.CONTRADICTION] > 0.8
    sure = judge(PAIR[0], PAIR[0], distance=0.0)
    assert not Unsure().holds(sure)
    assert sure.kind is Kind.DUPLICATE


def test_no_judge_is_asked_without_a_verifier_nor_now_where_it_is_a_language_model(
    settings,
):
    assert configured_judge() is None

    settings.CONFLICT_JUDGE = "language-model"
    assert configured_judge(asks_language_model=False) is None


@pytest.mark.django_db(transaction=True)
def test_the_job_puts_unsure_pairs_to_the_judge_once_and_keeps_what_it_said(
    served, unsure
):
    with running(completion(AGAINST)) as server:
        served(server)
        result = run_search()
        again = run_search()

    assert result == {"entries": 2, "open": 1, "asked": 1, "unreadable": 0}
    assert again == {"entries": 0, "open": 1, "asked": 0, "unreadable": 0}
    assert len(server.requests) == 1
    conflict = Conflict.objects.get()
    assert conflict.kind == Kind.CONTRADICTION
    said = conflict.reasons[-1]
    assert said["signal"] == "opinion"
    assert said["opinion"]["contradiction"] == 0.96
    assert len(said["opinion"]["fingerprint"]) == 64
    # A look without the judge leaves what it found.
    (still,) = find_entry_conflicts(unsure[0].pk, is_complete=False)
    assert still.reasons[-1] == said


@pytest.mark.django_db(transaction=True)
def test_an_unreadable_verdict_is_counted_and_not_used(served, unsure):
    with running(completion("who knows")) as server:
        served(server)
        assert run_search() == {"entries": 2, "open": 0, "asked": 1, "unreadable": 1}


@pytest.mark.django_db(transaction=True)
def test_the_job_goes_on_without_a_server_and_asks_once_it_is_back(served, unsure):
    with running(failure(503)) as server:
        served(server)
        result = run_search()
        assert (result["entries"], result["open"], result["asked"]) == (2, 0, 0)
        assert "language server" in result["without_judge"]

        server.replies[:] = [completion(AGAINST)]
        assert run_search()["open"] == 1


@pytest.mark.django_db(transaction=True)
def test_pairs_beyond_the_bound_wait_for_the_next_run(served, unsure, monkeypatch):
    with running(completion(AGAINST)) as server:
        served(server)
        monkeypatch.setattr(conflict_job, "MAX_PAIRS", 0)
        assert run_search()["asked"] == 0
        assert pending_entries() == []

        monkeypatch.setattr(conflict_job, "MAX_PAIRS", 1)
        assert run_search()["asked"] == 1


@pytest.mark.django_db
def test_the_command_says_how_many_pairs_the_judge_was_asked_about(
    served, unsure, capsys
):
    with running(completion(AGAINST)) as server:
        served(server)
        call_command("find_conflicts")

    assert (
        "Asked the language model m about 1 unsure pairs, 0 without a readable"
        in capsys.readouterr().out
    )
