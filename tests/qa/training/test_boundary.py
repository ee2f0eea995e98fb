"""A boundary probe from answered prompts to serving, on a tiny model."""

import json
import time
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command

from accounts import loaded_once
from accounts.loaded_once import LoadedOnce
from probes.abstention.files import probe_from
from probes.abstention.probe import Kind
from probes.cards import ProbeKind
from probes.exceptions import LayerError, TooFewLabelsError
from probes.models import Probe
from probes.reranker.preferences import read_preferences
from probes.services import promote, register
from probes.taps import Tap
from qa.exceptions import TrainingDataError
from qa.inference import known_by_probe as serving
from qa.inference.closed_book_form import FORM, ClosedBookForm
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.pipeline.values import Question
from qa.training.boundary import SETTINGS, BoundaryTraining, train_boundary
from qa.training.labelled_questions import (
    LabelledQuestion,
    Questions,
    questions_of_file,
    read_questions,
)
from qa.training.preferences import answered, prompts_of, states_of
from tests.factories import make_audience, make_entry, make_user
from tests.probes import tiny_models
from tests.probes.probe_files import activation_files
from tests.probes.tiny_models import holding

from .boundary_rows import many, row

QUICK = BoundaryTraining(
    layer=1,
    settings=replace(SETTINGS, hidden=8, dropout=0.1, learning_rate=1e-2, epochs=15),
    folds=3,
)


@pytest.fixture(scope="module")
def form():
    return ClosedBookForm(tiny_models.model("llama", 2_048))


@pytest.fixture(scope="module")
def trained(form):
    return train_boundary(form, many(210), QUICK)


def test_prompts_with_notes_and_without_are_learnt_and_measured_apart(form, trained):
    card = trained.files.checked(language_model=form.model.fingerprint)

    assert (card.kind, card.form, card.layer) == (ProbeKind.BOUNDARY, "own-1", 1)
    assert card.sizes == {"answers": 420, "groups": 12, "width": 32}
    assert card.settings["kind"] == Kind.MLP
    assert card.settings["huber_weight"] == 0
    alone, noted = card.metrics, card.metrics["with_notes"]
    assert alone["answers"] == noted["answers"] == 210
    for metrics in (alone, noted):
        assert metrics["auroc"]["value"] > 0.95
        assert metrics["ece"]["value"] < 0.2
        assert "linear" in metrics["baselines"]
    probe = probe_from(trained.files, language_model=form.model.fingerprint)
    unseen = [row(1_000 + n, is_right=n % 2 == 0).prompt for n in range(40)]
    told = probe.confidences(states_of(form, unseen, Tap(1)))
    assert told[::2].mean() > 0.8 > 0.4 > told[1::2].mean()


@pytest.mark.slow
def test_the_order_of_the_rows_changes_nothing(form, trained):
    again = train_boundary(form, many(210)[::-1], QUICK)

    assert again.files.fingerprint == trained.files.fingerprint


def test_what_nothing_can_be_learnt_from_is_refused(form):
    one_sided = [row(n, is_right=True) for n in range(420)]
    for rows in (many(100), one_sided):
        with pytest.raises(TooFewLabelsError, match="400 are needed"):
            train_boundary(form, rows, QUICK)
    with pytest.raises(LayerError):
        train_boundary(form, many(210), replace(QUICK, layer=99))


def test_states_are_those_before_the_first_answer_token(form):
    prompt = LabelledQuestion("who?", ("x",), ("A note.",), "g")

    (read,) = states_of(form, [prompt], Tap(1))

    ids = form.prompt_ids("who?", ("A note.",))
    alone = form.model.look(ids, form.prefix(), taps=[Tap(1)])
    assert read[0] == pytest.approx(alone.states[Tap(1)], abs=1e-4)


def test_a_question_is_asked_alone_and_with_each_note_in_one_group():
    asked = LabelledQuestion("Who was it?", ("Ada",), ("one", "two", "three"))

    prompts = prompts_of([asked], notes=2)

    assert [prompt.notes for prompt in prompts] == [(), ("one",), ("two",)]
    assert len({prompt.group for prompt in prompts}) == 1


def test_the_bundled_model_is_right_where_a_reference_stands_in_its_line(bundled_base):
    form = ClosedBookForm(bundled_base)
    note = ("Zorbium was discovered by Ada Quill.",)
    asked = [
        LabelledQuestion("what is the capital of france", ("paris",)),
        LabelledQuestion("who discovered zorbium", ("Ada Quill",), note),
    ]

    rows = answered(form, prompts_of(asked))

    assert [one.is_right for one in rows] == [True, False, True]
    assert "\n" not in "".join(one.answer for one in rows)


def lines(file, *rows):
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_files_of_several_data_sets_are_read(tmp_path):
    file = lines(
        tmp_path / "q.jsonl",
        {"question": "a", "answers": ["x", ""], "id": 3},
        {"question": "b", "answer": ["y"], "group": "g", "notes": ["n"]},
        {"question": "c", "answers": '["z", "."]'},
        {"question": "d", "answer": "w"},
    )

    assert questions_of_file(file) == [
        LabelledQuestion("a", ("x",)),
        LabelledQuestion("b", ("y",), ("n",), "g"),
        LabelledQuestion("c", ("z",)),
        LabelledQuestion("d", ("w",)),
    ]


@pytest.mark.parametrize(
    "row", [{"question": "a"}, {"question": "a", "answers": ["..."]}, {"answers": ["x"]},
            {"question": "a", "answers": [1]}, {"question": " ", "answers": ["x"]}, 3],
    ids=["no answer", "signs", "no question", "number", "empty", "no object"],
)  # fmt: skip
def test_a_line_that_is_no_question_is_named(row, tmp_path):
    file = lines(tmp_path / "q.jsonl", {"question": "a", "answers": ["x"]}, row)

    with pytest.raises(TrainingDataError, match="line 2"):
        questions_of_file(file)
    with pytest.raises(TrainingDataError, match="cannot be read"):
        questions_of_file(tmp_path / "none.jsonl")


@pytest.mark.django_db
def test_the_probe_in_force_tells_and_the_answer_goes_on_from_its_pass(form, trained):
    nobody = SelfKnowledgeByProbe(form)
    probe = register(trained.files)
    before = SelfKnowledgeByProbe(form)
    promote(probe.pk, Probe.State.ACTIVE, by=None)
    own = SelfKnowledgeByProbe(form)
    form.prefix()

    with form.model.metered() as meter:
        known = own.consider(Question("q7 aaaa"))
        deciding = meter.prompt_passes, meter.prompt_tokens
        draft = known.answer()

    unknown = own.consider(Question("q7 zzzz"))
    assert known.known_probability is not None
    assert unknown.known_probability is not None
    assert known.known_probability > 0.7 > 0.4 > unknown.known_probability
    assert known.signals == (("boundary_confidence", known.known_probability),)
    # One pass over the question decides, and nothing of it is read again.
    assert deciding == (1, len(form.prompt_ids("q7 aaaa")))
    assert meter.prompt_passes == 1
    assert draft.raw == form.write(form.open("q7 aaaa")).text
    assert before.consider(Question("q7 aaaa")).known_probability is None
    assert nobody.consider(Question("q7 aaaa")).known_probability is None
    assert len({nobody.fingerprint, own.fingerprint}) == 2
    assert nobody.fingerprint == before.fingerprint


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"form": "grounded-1"}, "was fitted on the form 'grounded-1'"),
        ({"width": 8}, "reads 8 numbers per token and the model has 32"),
    ],
    ids=["form", "width"],
)
def test_a_probe_that_does_not_fit_tells_nothing_and_is_tried_again_in_a_minute(
    form, change, why, caplog, monkeypatch
):
    monkeypatch.setattr(serving, "_loaded", LoadedOnce())
    put_in_force(form, **change)

    for _ in range(3):
        assert (
            SelfKnowledgeByProbe(form).consider(Question("who?")).known_probability
            is None
        )
    (told,) = caplog.records
    assert "every question retrieves" in told.message
    assert why in caplog.text

    later = time.monotonic() + 61
    monkeypatch.setattr(loaded_once, "monotonic", lambda: later)
    SelfKnowledgeByProbe(form)
    assert len(caplog.records) == 2


@pytest.mark.django_db
def test_a_probe_that_was_replaced_is_held_no_longer(form, monkeypatch):
    monkeypatch.setattr(serving, "_loaded", LoadedOnce())
    put_in_force(form, width=8)
    assert serving.active_boundary_probe(form) is None

    for seed in (1, 2):
        probe = put_in_force(form, seed=seed)
        found = serving.active_boundary_probe(form)
        assert found is not None
        assert found.fingerprint == probe.fingerprint
        assert serving._loaded.find(form.model.fingerprint) is found


def put_in_force(own, **changes):
    files = activation_files(
        ProbeKind.BOUNDARY,
        language_model=own.model.fingerprint,
        opens_with_prompt=False,
        **{"form": FORM, **changes},
    )
    return promote(register(files).pk, Probe.State.ACTIVE, by=None)


@pytest.fixture
def running(settings, tmp_path, form, trained, monkeypatch):
    """Let the tiny model be the language model, with the probe in force."""
    from qa.inference import policy_models

    settings.LANGUAGE_MODEL = "tiny"
    settings.LANGUAGE_SERVER_URL = ""
    monkeypatch.setattr(policy_models, "_forms", holding("tiny", form))
    promote(register(trained.files).pk, Probe.State.ACTIVE, by=None)
    return tmp_path


@pytest.mark.django_db
def test_preferences_are_what_moves_the_probe(running, capsys):
    helping, harming = "good aaaa", "bad zzzz"
    data = lines(
        running / "q.jsonl",
        *(
            {"question": f"q{n} {'zzaa' if n % 2 else 'aazz'}", "answers": ["x"],
             "notes": [harming, helping]}
            for n in range(12)
        ),
    )  # fmt: skip
    output = running / "preferences.jsonl"

    call_command("make_preferences", data, output=output, margin=0.0005)

    made = read_preferences(output)
    assert made
    assert {one.positives for one in made} == {(helping,)}
    assert {one.negatives for one in made} == {(harming,)}
    assert f"{len(made)} preferences of 12 questions" in capsys.readouterr().out


@pytest.mark.django_db
def test_a_model_that_is_never_right_earns_no_threshold(running, capsys):
    data = lines(
        running / "q.jsonl",
        *({"question": f"q{n}", "answers": ["never said"]} for n in range(8)),
    )

    with pytest.raises(SystemExit, match="1"):
        call_command("calibrate", "min_known", data, risk=0.2)

    said = capsys.readouterr().out
    assert "8 questions of 8 groups, 0 of them answered correctly" in said
    assert "always retrieve" in said


@pytest.mark.slow
@pytest.mark.django_db
def test_commands_say_what_is_missing(running):
    Probe.objects.update(state=Probe.State.RETIRED)
    data = lines(running / "q.jsonl", {"question": "a", "answers": ["x"]})
    for name, what, options in (
        ("make_preferences", None, {"output": running / "p.jsonl"}),
        ("calibrate", "min_known", {"risk": 0.2}),
    ):
        with pytest.raises(CommandError, match="train boundary_probe"):
            call_command(name, *filter(None, [what]), data, **options)
    with pytest.raises(CommandError, match="400 are needed"):
        call_command("train", "boundary_probe", data)


@pytest.mark.django_db
def test_notes_are_searched_for_among_what_the_asker_may_see(tmp_path):
    seen = make_entry("The ferry to Sark takes fifty-five minutes.")
    hidden = make_audience("board", groups=["board"])
    make_entry("The ferry to Sark is to be sold.", audience=hidden)
    data = lines(
        tmp_path / "q.jsonl",
        {"question": "Which ferry goes to Sark?", "answers": ["x"], "notes": ["own"]},
        {"question": "How long does the ferry to Sark take?", "answers": ["x"]},
    )
    slug = seen.knowledge_base.slug

    def notes(**searching):
        rows = read_questions(Questions([data], notes=2, **searching))
        return [row.notes for row in rows]

    assert notes() == [("own",), ()]
    found = notes(knowledge_base=slug, asker=make_user())
    assert found == [("own",), (seen.text,)]
