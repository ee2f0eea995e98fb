"""SQuAD 2.0: what is known, what is asked, and what counts as right."""

import os
from pathlib import Path

import pytest

from kb.exceptions import InvalidKnowledgeError
from kb.models import Document, Entry, KnowledgeBase
from qa.evaluation.knowledge import Fact, Source, ensure_knowledge
from qa.evaluation.suites.registry import open_suite
from qa.exceptions import EvaluationDataError
from qa.models import Answer, Policy
from tests.qa.evaluation import data_sets
from tests.qa.evaluation.opening import asked_suite

pytestmark = pytest.mark.django_db

PUBLIC = os.environ.get("NESCIO_EVALUATION_DATA", "")
public_data = pytest.mark.skipif(
    not PUBLIC, reason="NESCIO_EVALUATION_DATA names no directory of public data sets"
)


def test_the_knowledge_is_every_sentence_of_the_articles_verified(tmp_path):
    data_sets.squad2(tmp_path)

    suite = asked_suite("squad2", data=tmp_path)

    entries = Entry.objects.filter(knowledge_base=suite.knowledge_base)
    assert set(entries.values_list("text", flat=True)) == {
        "The harbour of Lunde was opened in 1871 by Queen Marta.",
        "It has four cranes, and the tallest of them is called Otto.",
        "A ferry to Skarn leaves every second day.",
        "A ticket for it costs 14 crowns.",
        "The bridge of Tornau spans 212 metres.",
        "Its towers are built of red granite.",
    }
    assert set(entries.values_list("state", "confidence")) == {("verified", 1.0)}
    titles = Document.objects.values_list("title", flat=True)
    assert sorted(titles) == ["Lunde (harbour)", "Tornau"]
    assert suite.knowledge_base.slug.startswith("eval-squad2-")


def test_no_question_enters_the_knowledge_base(tmp_path):
    data_sets.squad2(tmp_path)

    suite = asked_suite("squad2", data=tmp_path)

    known = Entry.objects.values_list("question", "text")
    said = {words for pair in known for words in pair}
    assert not said & {case.question for case in suite.cases}
    assert {question for question, _ in known} == {""}
    assert "Known leakage" in suite.protocol


def test_only_evaluations_see_what_they_are_asked_against(tmp_path):
    data_sets.squad2(tmp_path)
    open_suite("squad2", data=tmp_path)

    for entry in Entry.objects.select_related("audience"):
        assert not entry.audience.everyone
        names = entry.audience.groups.values_list("name", flat=True)
        assert list(names) == ["evaluation"]


def test_knowledge_is_loaded_once_and_a_loading_broken_off_goes_on(tmp_path):
    data_sets.squad2(tmp_path)
    first = open_suite("squad2", data=tmp_path)
    kept = Document.objects.get(title="Tornau")
    lost = Document.objects.exclude(pk=kept.pk)
    Entry.objects.filter(document__in=lost).delete()
    lost.delete()
    told: list[tuple[int, int]] = []

    again = open_suite(
        "squad2", data=tmp_path, loading=lambda *numbers: told.append(numbers)
    )

    assert again.knowledge_base == first.knowledge_base
    assert told == [(1, 2), (2, 2)]
    assert Document.objects.filter(pk=kept.pk).exists()
    assert Entry.objects.count() == 6
    assert KnowledgeBase.objects.count() == 1


def test_a_source_without_a_writable_fact_leaves_nothing_of_its_batch():
    good, bad = Source("a", "A", [Fact("Good.")]), Source("b", "B", [Fact("\x00")])

    with pytest.raises(InvalidKnowledgeError, match="text is empty"):
        ensure_knowledge("eval-x", "X", [good, bad])

    assert not Document.objects.exists()


@pytest.mark.slow
def test_an_answer_is_judged_by_its_text_and_none_is_right_where_there_is_none(
    tmp_path,
):
    data_sets.squad2(tmp_path)
    suite = asked_suite("squad2", data=tmp_path, shadow=True)

    rows = {case.id: suite.judge(case.id) for case in suite.cases}

    # "The bridge of Tornau spans 212 metres.", of which the model marks the answer.
    assert rows["q6"].is_correct is True
    assert rows["q6"].measures["f1"] == 1.0
    assert rows["q6"].measures["exact_match"] == 1.0
    assert rows["q6"].group == "Tornau"
    unanswerable = [rows[name] for name in ("q3", "q5", "q7")]
    # In shadow a draft is written for everything that has evidence, and is wrong here.
    assert [row.is_correct for row in unanswerable] == [False] * 3
    assert all(row.is_answered and row.is_wrong_if_shown for row in unanswerable)
    assert all(row.signals["verdict_probability"] is not None for row in rows.values())
    assert Answer.objects.filter(outcome="answered").count() == len(rows)


def test_a_shadow_is_made_once_and_decides_nothing_else(tmp_path):
    data_sets.squad2(tmp_path)

    shadows = [
        open_suite("squad2", data=tmp_path, shadow=True).policy for _ in range(2)
    ]

    assert shadows[0] == shadows[1]
    shadow, active = (
        Policy.objects.get(name="shadow"),
        Policy.objects.get(is_active=True),
    )
    gates = (shadow.hard_refusal, shadow.soft_refusal, shadow.support_check)
    assert gates == (False, False, False)
    assert (shadow.alpha, shadow.min_verdict) == (active.alpha, active.min_verdict)
    assert not shadow.is_active


def test_a_sample_is_seeded_and_takes_every_stratum_by_its_share(tmp_path):
    data_sets.squad2(tmp_path, copies=10)

    def drawn(seed):
        return asked_suite("squad2", data=tmp_path, limit=14, seed=seed).cases

    cases = drawn(1)
    assert [case.id for case in cases] == [case.id for case in drawn(1)]
    assert {case.id for case in cases} != {case.id for case in drawn(2)}
    strata = [(case.group[0], case.is_answerable) for case in cases]
    # Of 70: 30 and 20 about the harbour and its ferry, 10 and 10 about the bridge.
    assert {key: strata.count(key) for key in set(strata)} == {
        ("L", True): 6,
        ("L", False): 4,
        ("T", True): 2,
        ("T", False): 2,
    }


def test_articles_are_chosen_for_knowledge_and_questions_alike(tmp_path):
    data_sets.squad2(tmp_path)

    only = asked_suite("squad2", data=tmp_path, articles=("Tornau",))
    rest = asked_suite("squad2", data=tmp_path, exclude_articles=("Tornau",))

    assert {case.group for case in only.cases} == {"Tornau"}
    assert {case.group for case in rest.cases} == {"Lunde_(harbour)"}
    assert only.knowledge_base != rest.knowledge_base
    assert only.knowledge_base.entries.count() == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "--data"),
        ({"data": Path("/nowhere")}, "has no squad"),
        ({"articles": ("Atlantis",)}, "no article 'Atlantis'"),
        ({"knowledge_base": "cards"}, "does not take --knowledge-base"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path, options, told):
    if "data" not in options and options:
        data_sets.squad2(tmp_path)
        options = {"data": tmp_path, **options}

    with pytest.raises(EvaluationDataError, match=told):
        open_suite("squad2", **options)


def test_a_file_that_is_laid_out_otherwise_is_named(tmp_path):
    data_sets.written(tmp_path / "squad/squad-v2.json", {"data": [{"title": 1}]})

    with pytest.raises(EvaluationDataError, match=r"squad-v2\.json"):
        open_suite("squad2", data=tmp_path)


@public_data
def test_the_public_file_is_read_whole():
    from qa.evaluation.suites import question_sets

    file = next(Path(PUBLIC).glob("squad/squad-v2*.json"))
    articles = question_sets.read_articles(file)
    cases = [
        c
        for title, rows in articles.items()
        for c in question_sets.article_cases(title, rows)
    ]

    assert len(articles) == 24
    assert len(cases) == len({case.id for case in cases}) == 7958
    assert sum(not case.is_answerable for case in cases) == 4048
    assert all(case.references for case in cases if case.is_answerable)


def test_stray_control_characters_of_a_data_set_are_left_out():
    fact = Fact("Costs 14\x96 crowns\x00.\n", "What\x85does it cost?")
    source = Source("one", "A\x07 title", [fact])

    knowledge_base = ensure_knowledge("eval-stray", "Stray", [source])

    entry = Entry.objects.get(knowledge_base=knowledge_base)
    assert (entry.text, entry.question) == (fact.text, fact.question)
    assert fact.text == "Costs 14 crowns ."
    assert Document.objects.get(knowledge_base=knowledge_base).title == "A title"


def test_a_fact_stands_below_its_heading():
    facts = [
        Fact("A ticket costs 14 crowns.", heading="Tickets"),
        Fact("Children pay half.", heading="Tickets"),
        Fact("Otto is a crane.", heading="Cranes"),
        Fact("The harbour is old."),
    ]

    base = ensure_knowledge("eval-headed", "Headed", [Source("one", "Lunde", facts)])

    entries = Entry.objects.filter(knowledge_base=base).order_by("pk")
    headings = entries.values_list("text", "section__heading")
    assert dict(headings) == {fact.text: fact.heading or None for fact in facts}
    assert Document.objects.get(knowledge_base=base).sections.count() == 2
