"""Questions that take two entries: how they are made, and each way of answering them."""

import csv
import json

import pytest
from django.core.management import CommandError, call_command

from kb.models import Entry
from probes.models import Probe
from probes.services import promote, register
from qa.evaluation.knowledge import Fact
from qa.exceptions import EvaluationDataError
from qa.inference.policy_models import load_closed_book_form
from qa.models import Answer
from studies.cbdr.timing.asking import Cost
from studies.ctrla.two_hop.command import Command
from studies.ctrla.two_hop.questions import TwoHop, read_two_hop
from studies.ctrla.two_hop.report import WAYS, claims_of, compared, sent_to
from tests.probes import tiny_models
from tests.probes.direction_files import direction_probe_files, random_directions

COUNTRIES = {"Arland": "Arle", "Borland": "Borg", "Corland": "Cork"}
ONE_CALL = {"milliseconds": 2.0, "prompt_passes": 1.0, "prompt_tokens": 30.0, "steps": 4.0}  # fmt: skip


def write_data(directory, *, places=3):
    """Write both sets in their layouts; nothing in them is of this world."""
    rows = [
        {"id": n, "question": f"In what country is Village {n}?", "answers": [name, f"{name} Republic"]}
        for n, name in enumerate([*COUNTRIES] * places)
    ]  # fmt: skip
    rows += [
        {"id": 90, "question": "In what city was Ann Ode born?", "answers": ["Borg"]},
        {"id": 91, "question": "In what city was Bo Ode born?", "answers": ["Nowhere"]},
        # Two of one name: nobody can tell which is meant.
        {"id": 92, "question": "In what country is Twin?", "answers": ["Arland"]},
        {"id": 93, "question": "In what country is Twin?", "answers": ["Borland"]},
    ]
    (directory / "popqa").mkdir(parents=True)
    lines = "\n".join(json.dumps(row) for row in rows)
    (directory / "popqa/popqa_longtail.jsonl").write_text(lines)
    said = {
        "capitals": [f"{city} is a city in {name}" for name, city in COUNTRIES.items()],
        "cities": ["Port is a city in Arland.", "Port is a city in Borland."],
        "companies": ["Acme has headquarters in Corland.", "Acme makes anvils."],
        "elements": ["Argon has the symbol Ar.", "Argon has the atomic number of 18."],
        "inventions": [
            "Cid Ode invented the wheelbarrow.",
            "Cid Ode lived in Arland.",
            "Dan Ode invented the law of wheels.",
            "Dan Ode lived in Arland.",
        ],
    }
    (directory / "true_false").mkdir()
    for name, statements in said.items():
        file = directory / f"true_false/{name}_true_false.csv"
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["statement", "label"])
            writer.writerows([text, 1] for text in statements)
            writer.writerow([f"{name} are blue.", 0])
    return directory


def test_a_question_joins_two_facts_that_the_knowledge_base_holds(tmp_path):
    made = read_two_hop(write_data(tmp_path), seed=0)

    by_kind: dict[str, list[TwoHop]] = {}
    for one in made.questions:
        by_kind.setdefault(one.family, []).append(one)
    (company,) = by_kind["company, country, capital"]
    assert company.question == (
        "What is the capital of the country where Acme has its headquarters?"
    )
    assert company.references == ("Cork",)
    assert company.facts == (
        Fact("Acme has headquarters in Corland."),
        Fact("Cork", question="What is the capital of Corland?"),
    )
    (invention,) = by_kind["invention, inventor, country"]  # and no law
    assert invention.references == ("Arland", "Arland Republic")
    (birth,) = by_kind["person, city, country"]  # whose city is known
    assert birth.second == Fact("Borg is a city in Borland.")
    (element,) = by_kind["symbol, element, atomic number"]
    assert element.answer == "18"
    assert len(by_kind["place, country, capital"]) == 9
    held = {fact for source in made.sources for fact in source.facts}
    assert all(fact in held for one in made.questions for fact in one.facts)
    assert not any("blue" in fact.text for fact in held)


def test_no_family_has_one_answer_more_than_five_times(tmp_path):
    made = read_two_hop(write_data(tmp_path, places=8), seed=0)

    places = [one.answer for one in made.questions if one.id.startswith("place:")]
    assert {name: places.count(name) for name in places} == dict.fromkeys(
        COUNTRIES.values(), 5
    )


def test_the_first_questions_are_the_same_however_many_there_are(tmp_path):
    made = read_two_hop(write_data(tmp_path), seed=3)

    assert read_two_hop(tmp_path, seed=3) == made
    assert read_two_hop(tmp_path, seed=4).questions != made.questions


def test_missing_data_is_named(tmp_path):
    with pytest.raises(EvaluationDataError, match="popqa"):
        read_two_hop(tmp_path, seed=0)


def row(answer, *found, shown=True, searches=1):
    return {
        "answer": answer, "found": list(found), "read": list(found), "shown": shown, "searches": searches, "segments": 1,
        "cost": ONE_CALL,
    }  # fmt: skip


def test_a_decider_pays_for_its_draft_where_it_retrieves_after_all():
    alone = {name: row("", False, False, searches=0) for name in "ab"}
    once = {name: row("Arle", True, True) for name in "ab"}

    came = sent_to(alone, once, {"a": True, "b": False})

    assert (came["a"]["answer"], came["b"]["answer"]) == ("Arle", "")
    assert Cost(**came["a"]["cost"]).prompt_passes == 2
    assert Cost(**came["b"]["cost"]).prompt_passes == 1


def test_every_claim_is_of_the_same_questions_and_says_what_bounds_it():
    questions = [
        TwoHop(str(n), "k", "?", (f"City {n % 10}",), Fact("a"), Fact("b"))
        for n in range(40)
    ]
    wrong = {one.id: row("no", True, False) for one in questions}
    right = {one.id: row(one.answer, True, True) for one in questions}
    rows = {name: right if name.startswith(("CtrlA", "both")) else wrong for name in WAYS}  # fmt: skip
    rows["CtrlA"] = {**right, **{one.id: wrong[one.id] for one in questions[:20]}}

    claims = {claim.name: claim for claim in claims_of(compared(questions, rows))}

    against_never = claims[
        "CtrlA: right answers of two-hop questions, against never (retrieves 100.0 %)"
    ]
    assert against_never.value == pytest.approx(0.5)
    assert against_never.verdict == "gains"
    assert against_never.count == 40
    assert all("With both given" in claim.why for claim in claims.values())
    # All draws agree that everything differs: nothing is claimed of that.
    assert claims[
        "CtrlA, every new word in doubt: both entries found of two-hop questions, "
        "against once (retrieves 100.0 %)"
    ].verdict == "not measured"  # fmt: skip


@pytest.mark.slow
@pytest.mark.django_db
def test_the_command_asks_every_way_once_and_goes_on(
    tmp_path, capsys, settings, monkeypatch
):
    tiny = tiny_models.save(tmp_path / "tiny", context_length=2_048)
    settings.LANGUAGE_MODEL, settings.LANGUAGE_ADAPTER = str(tiny), "none"
    # Each question is asked in ten ways, a sentence at a time: three tell all of it.
    monkeypatch.setattr("studies.ctrla.two_hop.command._CALIBRATION_EACH", 3)
    figures = tmp_path / "figures.json"
    given = (
        "--data", str(write_data(tmp_path / "data")),
        "--record", str(tmp_path / "record.jsonl"), "--json", str(figures),
    )  # fmt: skip
    with pytest.raises(CommandError, match="train directions"):
        call_command(Command(), *given)
    probe = register(
        direction_probe_files(random_directions(load_closed_book_form().model))
    )
    promote(probe.pk, Probe.State.ACTIVE, by=None)
    with pytest.raises(CommandError, match="too few to choose thresholds"):
        call_command(Command(), *given, "--limit", "2")

    call_command(Command(), *given, "--limit", "3")
    shown, first = capsys.readouterr().out, figures.read_text()
    call_command(Command(), *given, "--limit", "3")

    assert "every new word in doubt" in shown
    assert figures.read_text() == first  # times too: nothing was asked again
    ways = {way["way"]: way for way in json.loads(first)["ways"]}
    assert tuple(ways) == WAYS
    assert json.loads(first)["questions"] == 2
    assert ways["never"]["searches"] == 0
    assert ways["never"]["found"] == [0.0, 0.0]
    assert ways["never, CtrlA's writer"]["searches"] == 0
    assert ways["once"]["searches"] == 1
    assert ways["both given"]["found"] == [1.0, 1.0]
    assert ways["CtrlA, every new word in doubt"]["cost"]["prompt_passes"] >= 1
    # Only the evaluation's own user sees the entries, and nothing was asked by anybody.
    assert set(Entry.objects.values_list("audience__slug", flat=True)) == {"evaluation"}
    assert not Answer.objects.exists()
