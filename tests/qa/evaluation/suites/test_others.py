"""SelfAware, CLINC150, the open-domain sets, SciFact, one's own questions, joined suites."""

import json
import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from kb.models import Entry
from qa.evaluation.suites.registry import open_suite, suites
from qa.exceptions import EvaluationDataError
from tests.factories import make_audience, make_entry, make_knowledge_base
from tests.qa.evaluation import data_sets
from tests.qa.evaluation.opening import asked_suite, joined_suite

pytestmark = pytest.mark.django_db

PUBLIC = os.environ.get("NESCIO_EVALUATION_DATA", "")


def test_every_agreed_suite_is_there():
    assert {
        "demo", "squad2", "selfaware", "clinc-oos", "triviaqa", "nq-open", "popqa",
        "webquestions", "scifact", "own",
    } <= set(suites())  # fmt: skip


def test_an_unknown_suite_is_told_with_those_that_there_are():
    with pytest.raises(EvaluationDataError, match="squad2"):
        open_suite("squad3")


def test_selfaware_says_that_its_sources_tell_the_label(tmp_path):
    data_sets.selfaware(tmp_path)

    suite = asked_suite("selfaware", data=tmp_path)

    assert "source" in suite.protocol
    assert {case.id: case.is_answerable for case in suite.cases} == {
        "1": True,
        "2": False,
    }
    assert suite.knowledge_base.slug == "eval-empty"
    judged = suite.judge("1")
    assert (judged.is_answered, judged.reason) == (False, "nothing_known")


def test_selfaware_is_asked_against_the_knowledge_base_that_is_named(tmp_path):
    data_sets.selfaware(tmp_path)
    make_knowledge_base("miles")

    suite = asked_suite("selfaware", data=tmp_path, knowledge_base="miles")

    assert suite.knowledge_base.slug == "miles"
    with pytest.raises(EvaluationDataError, match="'nowhere'"):
        asked_suite("selfaware", data=tmp_path, knowledge_base="nowhere")


@pytest.mark.slow
def test_an_intent_is_right_by_its_name_and_no_test_utterance_is_known(tmp_path):
    data_sets.clinc(tmp_path)

    suite = open_suite("clinc-oos", data=tmp_path)

    known = set(Entry.objects.values_list("question", flat=True))
    assert known == {
        "my card was stolen, stop it",
        "how much money do i have",
        "what is left on my account",
    }
    assert "1 of them" in suite.protocol
    judged = suite.judge("test-2")
    assert (judged.is_answered, judged.is_correct) == (True, True)
    assert suite.judge("oos-1").is_answerable is False


@pytest.mark.parametrize("name", ["triviaqa", "nq-open", "popqa", "webquestions"])
def test_open_questions_are_to_be_refused_where_nothing_is_known(tmp_path, name):
    data_sets.open_domain(tmp_path)
    make_knowledge_base("lunde")

    empty = asked_suite(name, data=tmp_path)
    given = asked_suite(name, data=tmp_path, knowledge_base="lunde")

    assert [case.is_answerable for case in empty.cases] == [False]
    assert "knows nothing" in empty.protocol
    assert [case.is_answerable for case in given.cases] == [None]
    assert given.cases[0].references
    assert "lunde" in given.protocol


def test_scifact_measures_where_the_relevant_abstracts_stand(tmp_path):
    data_sets.scifact(tmp_path)

    suite = open_suite("scifact", data=tmp_path)

    assert suite.policy is None
    assert set(suite.case_ids) == {"1", "2"}
    judged = suite.judge("1")
    assert judged.measures == {
        "recall_at_1": 1.0,
        "recall_at_5": 1.0,
        "recall_at_10": 1.0,
        "recall_at_100": 1.0,
        "ndcg_at_10": 1.0,
        "reciprocal_rank": 1.0,
    }
    assert judged.is_correct


def test_a_judgement_of_a_missing_document_is_an_error(tmp_path):
    folder = data_sets.scifact(tmp_path)
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t99\t1\n")

    with pytest.raises(EvaluationDataError, match="document 99"):
        open_suite("scifact", data=tmp_path)


def own(directory: Path, *rows, name="cases.jsonl") -> Path:
    return data_sets.lines(directory / name, [dict(row) for row in rows])


@pytest.mark.slow
def test_own_questions_are_asked_against_own_facts_and_cite_them_by_key(tmp_path):
    cases = own(
        tmp_path,
        {
            "id": "a",
            "question": "What does a ticket to Skarn cost?",
            "expect": "answered",
            "evidence": ["price"],
            "references": ["14 crowns"],
        },
    )
    facts = own(
        tmp_path,
        {"text": "A ticket to Skarn costs 14 crowns.", "key": "price"},
        {"text": "The ferry may be late.", "confidence": 0.5},
        name="facts.jsonl",
    )

    suite = open_suite("own", data=cases, knowledge=facts)

    judged = suite.judge("a")
    assert (judged.is_answered, judged.is_correct) == (True, True)
    assert sorted(Entry.objects.values_list("state", "confidence")) == [
        ("in_review", 0.5),
        ("verified", 1.0),
    ]


def test_own_questions_are_asked_by_who_is_in_the_named_groups(tmp_path):
    make_audience("leads", groups=["team-leads"])
    make_entry("Leads open the safe.", audience=make_audience("leads"))
    file = own(
        tmp_path,
        {"id": "a", "question": "Who opens the safe?", "expect": "refused"},
        {
            "id": "b",
            "question": "Who opens the safe?",
            "expect": "answered",
            "as": "team-leads",
        },
    )

    suite = open_suite("own", data=file, knowledge_base="cards", shadow=True)

    assert not suite.judge("a").is_answered
    assert suite.judge("b").is_answered
    user = User.objects.get(username="evaluation-team-leads")
    assert not user.has_usable_password()


def test_a_group_or_file_that_is_not_there_is_told(tmp_path):
    line = {"id": "a", "question": "Why?", "expect": "refused", "as": "nobodies"}
    file = own(tmp_path, line)

    with pytest.raises(EvaluationDataError, match="'nobodies'"):
        open_suite("own", data=file)
    with pytest.raises(EvaluationDataError, match="no file"):
        open_suite("own", data=file, knowledge=tmp_path / "none.jsonl")


@pytest.mark.slow
def test_joined_suites_keep_their_ids_apart(tmp_path):
    data_sets.squad2(tmp_path)
    data_sets.selfaware(tmp_path)

    suite = joined_suite("squad2+selfaware", data=tmp_path, shadow=True)

    assert suite.name == "squad2+selfaware"
    assert len(suite.case_ids) == len(set(suite.case_ids)) == 9
    assert suite.case_ids[-1].startswith("selfaware/")
    considered = list(suite.consider(["squad2/q6", "selfaware/2"]))
    assert [c.judged.id for c in considered] == ["squad2/q6", "selfaware/2"]
    assert considered[0].judged.group == "squad2/Tornau"
    assert json.dumps(dict(suite.parameters))


@pytest.mark.skipif(not PUBLIC, reason="NESCIO_EVALUATION_DATA names no directory")
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("selfaware", 3369), ("triviaqa", 1000), ("nq-open", 3610), ("popqa", 1399),
        ("webquestions", 2032),
    ],
)  # fmt: skip
def test_the_public_files_are_read_whole(name, count):
    suite = open_suite(name, data=Path(PUBLIC))

    assert len(suite.case_ids) == len(set(suite.case_ids)) == count
