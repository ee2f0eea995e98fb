"""Models of several families answer as a chat, in JSON, with their insides kept."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from probes.cards import ProbeKind
from probes.exceptions import AdapterMismatchError
from probes.language_model import Tokens
from probes.language_model.loading import SHIPPED, load_model
from probes.services import promote, register
from probes.taps import Tap
from qa.answers import sources
from qa.answers.sources import active_probes
from qa.inference import configured, grounded_form, instructed_form, server_reply
from qa.inference.by_history import VerdictByHistory, VerdictForm
from qa.inference.configured import load_language_model
from qa.inference.grounded import GroundedLanguageModel
from qa.inference.guided import GuidedLanguageModel
from qa.inference.instructed import InstructedLanguageModel
from qa.inference.instructed_form import (
    LEADS,
    fixed_ids,
    prompt_ids,
    sequence_passing,
    written_value,
)
from qa.inference.label_judge import LabelPair
from qa.inference.server_reply import INSTRUCTIONS, SCHEMA, printable, user_message
from qa.inference.white_box import form_of, load_white_box
from qa.pipeline.gates import Reason
from qa.pipeline.language_model import Capture, NoProbes, Prompt
from qa.pipeline.soft_gate import verify_support
from qa.pipeline.values import Question
from qa.training.draft_activations import DraftActivations
from qa.training.labels import LabelledDraft
from tests.probes import tiny_models
from tests.probes.probe_files import activation_files
from tests.qa.inference.test_server_reply import HOSTILE
from tests.qa.inference.test_verdict_by_history import PAST, GivenHistory
from tests.qa.pipeline.values import (
    MODEL,
    GivenRetriever,
    make_evidence,
    make_policy,
    make_retrieval,
    run_pipeline,
)

FEES = (
    make_evidence("The Classic card has no annual fee."),
    make_evidence(
        "The Gold card costs 72 euros a year. It is charged in January.", entry_id=2
    ),
)
PROMPT = Prompt("What does the Gold card cost?", FEES, "en")
PLACES = (Tap(1), Tap(2))
OWN = "0" * 64  # the tiny models' fingerprint


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Random weights write until they are stopped."""
    for name in ("_MAX_QUOTE", "_MAX_REASONING", "_MAX_ANSWER"):
        monkeypatch.setattr(server_reply, name, 24)
    sources._probes.clear()


@pytest.fixture(scope="module", params=["gemma", "llama", "qwen2"])
def instructed(request):
    return InstructedLanguageModel(tiny_models.model(request.param, 8_192))


@pytest.fixture(scope="module")
def llama():
    return InstructedLanguageModel(tiny_models.model("llama", 8_192))


def test_the_reply_is_the_schemas_object_whatever_the_weights(instructed):
    generation = instructed.generate(PROMPT)

    reply = json.loads(generation.raw)
    jsonschema.validate(reply, SCHEMA)
    assert list(reply) == list(LEADS)
    assert not generation.malformed
    assert set(generation.cited) == set(reply["evidence"]) <= {1, 2}
    assert {number for number, _ in generation.quotes} <= set(generation.cited)
    assert generation.answer == printable(reply["answer"]).strip()
    assert "".join(generation.tokens).strip() == generation.answer != ""
    assert generation.least_log_probability <= generation.log_probability < 0
    assert 0 < generation.entropy <= np.log(320)
    assert generation.trace.answer == generation.trace.prompt == {}


def test_the_verdict_is_what_true_has_against_false(instructed):
    model = instructed.model
    generation = instructed.generate(PROMPT)

    before, lead, _ = generation.raw.partition(LEADS["can_answer"])
    ids = model.tokens.encode_text(f"{before}{lead} ")
    context = model.read((*prompt_ids(model.tokens, PROMPT), *ids))
    true, false = (model.tokens.encode_text(letter)[0] for letter in "tf")
    chances = context.next_log_probabilities[[true, false]].exp()
    expected = float(chances[0] / chances.sum())
    assert generation.verdict_probability == pytest.approx(expected, abs=1e-4)
    assert generation.can_answer is (expected >= 0.5)


def test_what_is_kept_on_the_way_equals_a_second_pass(instructed):
    capture = Capture(answer=PLACES, ends=True, prompt=PLACES)

    generation = instructed.generate(PROMPT, capture)

    model, trace = instructed.model, generation.trace
    passing = sequence_passing(
        model.tokens, PROMPT, generation.answer, written=generation.raw
    )
    (read,) = model.read_activations([passing], PLACES)
    for tap in PLACES:
        kept = (trace.prompt[tap][None], trace.answer[tap], trace.end[tap])
        assert len(kept[1]) == len(generation.tokens) > 0
        np.testing.assert_allclose(
            np.concatenate(kept), read[tap], rtol=1e-3, atol=1e-4
        )


def test_drafts_are_read_for_training_as_they_were_written(llama, tmp_path):
    generation = llama.generate(PROMPT, Capture(answer=PLACES, prompt=PLACES))
    draft = LabelledDraft(
        id="1", group="g", signals={}, is_answerable=True, is_correct=True,
        prompt=PROMPT, answer=generation.answer, written=generation.raw,
    )  # fmt: skip

    activations = DraftActivations(
        llama.model, [draft], directory=tmp_path, form=form_of(llama)
    )

    (row,) = activations.of_sequences(Tap(1))
    np.testing.assert_allclose(row[0], generation.trace.prompt[Tap(1)], atol=2e-3)
    np.testing.assert_allclose(row[1:-1], generation.trace.answer[Tap(1)], atol=2e-3)


def test_an_answer_that_nobody_wrote_here_is_read_too(llama):
    passing = sequence_passing(llama.model.tokens, PROMPT, 'It is "72".')

    asked = prompt_ids(llama.model.tokens, PROMPT)
    text = llama.model.tokens.decode(passing.ids[len(asked) :])
    assert text == '{"can_answer": true, "answer": "It is \\"72\\"."'
    assert passing.positions[0] == len(asked) - 1
    kept = [passing.ids[place] for place in passing.positions[1:]]
    assert llama.model.tokens.decode(kept) == 'It is \\"72\\"."'


def test_the_watch_can_stop_the_answer_before_it_begins(llama):
    generation = llama.generate(
        PROMPT, Capture(prompt=PLACES, watch=lambda _place, _state: False)
    )

    assert generation.is_stopped
    assert list(generation.trace.prompt) == [Tap(1)]
    assert generation.verdict_probability is None
    assert generation.answer == ""


def test_the_chat_holds_what_a_server_is_sent(llama):
    tokens = llama.model.tokens
    ids = prompt_ids(tokens, PROMPT)

    text = tokens.decode(ids)
    assert text.startswith(f"system\n{INSTRUCTIONS}\nuser\n{user_message(PROMPT)}")
    assert text.endswith("\nassistant\n")
    fixed = fixed_ids(tokens)
    assert ids[: len(fixed)] == fixed
    assert tokens.decode(fixed).endswith("user\n")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_a_control_token_or_breaks_the_reply(llama, hostile):
    tokens = llama.model.tokens
    prompt = Prompt(hostile, (make_evidence(hostile, question=hostile),), "en")

    ids = prompt_ids(tokens, prompt)

    plain = prompt_ids(tokens, PROMPT)
    assert [i for i in ids if i in tokens.control_ids] == [
        i for i in plain if i in tokens.control_ids
    ]
    assert not llama.generate(prompt).malformed


def test_long_entries_and_questions_are_cut(llama):
    tokens = llama.model.tokens
    longer = replace(FEES[0], text="x" * 700, question="y" * 700)

    text = tokens.decode(prompt_ids(tokens, Prompt("z" * 700, (longer,), "en")))

    assert "x" * 512 in text
    assert "x" * 513 not in text
    assert "y" * 257 not in text
    assert "z" * 257 not in text


def test_without_evidence_nothing_is_written(llama):
    with pytest.raises(ValueError, match="without evidence"):
        llama.generate(Prompt("What?", (), "en"))


@pytest.mark.slow
@given(
    text=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    is_ascii=st.booleans(),
)
@hypothesis_settings(max_examples=200, deadline=None)
def test_a_texts_tokens_join_to_it_however_it_is_escaped(text, is_ascii):
    tokens = Tokens(tiny_models.tokenizer())
    ids = tokens.encode_text(f" {json.dumps(text, ensure_ascii=is_ascii)}")

    value = written_value(tokens, ids)

    assert "".join(value.texts) == printable(text)
    assert value.start + len(value.texts) == len(ids) - 1


def test_soft_refusal_goes_by_the_verdict(llama):
    def run(policy):
        steps = run_pipeline(
            PROMPT.question,
            retriever=GivenRetriever(make_retrieval(*FEES)),
            language_model=lambda: llama,
            probes=lambda _model: NoProbes(),
            policy=policy,
        )
        return [*steps][-1]

    verdict = llama.generate(PROMPT).verdict_probability
    refused = run(make_policy(min_verdict=1.0, verification=False))

    assert refused.reason is Reason.MODEL_DECLINED
    assert refused.generation.verdict_probability == pytest.approx(verdict)
    passed = run(make_policy(min_verdict=0.0, verification=False))
    assert passed.reason is not Reason.MODEL_DECLINED


def test_a_quote_that_stands_in_no_entry_is_no_citation(instructed):
    generation = instructed.generate(PROMPT)

    support = verify_support(
        Question(PROMPT.question, "en"), make_retrieval(*FEES), generation
    )

    quoted = {number for number, _ in generation.quotes}
    assert not {FEES[number - 1].entry_id for number in quoted} & {
        citation.entry_id for citation in support.citations
    }
    assert support.dropped == len(quoted)


def test_past_verdicts_correct_its_own(llama):
    form = VerdictForm(llama.model, LabelPair("A", "B"))
    generation = llama.generate(PROMPT)

    debiased = VerdictByHistory(form, GivenHistory(PAST)).debias(
        PROMPT, generation, language_model=MODEL
    )

    assert 0 < debiased.probability < 1
    assert debiased.examples == ("near", "far")


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [ProbeKind.ABSTENTION, ProbeKind.EARLY])
def test_probes_read_the_form_that_they_were_fitted_on_alone(llama, kind):
    def activate(form):
        files = activation_files(kind, language_model=OWN, form=form)
        promote(register(files).pk, "active", by=None)

    def read(language_model):
        probes = active_probes(language_model)
        generation = language_model.generate(PROMPT, probes.capture(least_early=None))
        found = probes.read(PROMPT, generation, {})
        return found.answer if kind is ProbeKind.ABSTENTION else found.early, found

    activate(instructed_form.FORM)
    value, found = read(llama)
    assert 0 < value < 1
    if kind is ProbeKind.ABSTENTION:
        assert found.along[-1] == value
    value, found = read(GroundedLanguageModel(llama.model))
    assert value is None
    assert "instructed-1" in found.missing
    activate(grounded_form.FORM)
    value, found = read(llama)
    assert value is None
    assert "grounded-1" in found.missing


def test_each_form_of_a_model_has_its_own_fingerprint(llama):
    forms = (InstructedLanguageModel, GroundedLanguageModel, GuidedLanguageModel)

    assert len({form(llama.model).fingerprint for form in forms} | {OWN}) == 4


@pytest.fixture
def on_disk(settings, tmp_path):
    settings.LANGUAGE_SERVER_URL = ""
    settings.LANGUAGE_MODEL = str(tiny_models.save(tmp_path, context_length=8_192))
    return settings


@pytest.mark.parametrize(
    ("form", "least", "expected"),
    [
        ("auto", 10**9, GuidedLanguageModel),
        ("auto", 1_000, InstructedLanguageModel),
        ("copy", 1_000, GuidedLanguageModel),
        ("instructed", 10**9, InstructedLanguageModel),
    ],
)
def test_the_form_is_chosen_by_size_or_setting(
    on_disk, monkeypatch, form, least, expected
):
    on_disk.LANGUAGE_FORM = form
    monkeypatch.setattr(configured, "_INSTRUCTED_FROM", least)

    model = load_language_model()

    assert type(model) is expected
    assert load_language_model() is model
    # What asks the model by itself shares its weights.
    assert load_model(on_disk.LANGUAGE_MODEL, adapter="none") is load_white_box(model)


def test_a_model_without_a_chat_template_copies(on_disk, monkeypatch, tmp_path):
    tiny_models.tokenizer(None).save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
    monkeypatch.setattr(configured, "_INSTRUCTED_FROM", 1_000)

    assert type(load_language_model()) is GuidedLanguageModel


@pytest.mark.slow
def test_the_bundled_model_fills_the_form_in_without_its_adapter(settings):
    settings.LANGUAGE_SERVER_URL = ""
    settings.LANGUAGE_MODEL = "bundled"
    settings.LANGUAGE_FORM = "instructed"
    model = load_language_model()

    assert isinstance(model, InstructedLanguageModel)
    assert model.model.adapter is None
    generation = model.generate(PROMPT, Capture(answer=(Tap(20),), ends=True))

    jsonschema.validate(json.loads(generation.raw), SCHEMA)
    assert not generation.malformed
    assert generation.trace is not None
    assert generation.trace.answer[Tap(20)].shape == (len(generation.tokens), 576)
    assert generation.trace.end[Tap(20)].shape == (1, 576)
    settings.LANGUAGE_ADAPTER = str(SHIPPED)
    with pytest.raises(AdapterMismatchError, match="NESCIO_LANGUAGE_FORM"):
        load_language_model()
