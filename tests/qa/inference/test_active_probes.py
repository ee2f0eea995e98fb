"""Probes of the registry, asked of a real (tiny) model's answers."""

import logging
import threading
from dataclasses import replace

import numpy as np
import pytest

from probes.abstention.probe import Kind
from probes.cards import ProbeFiles, ProbeKind
from probes.language_model.second_pass import Passing
from probes.models import Probe
from probes.services import promote, register, retire
from probes.taps import Part, Tap
from qa.answers import sources
from qa.answers.sources import active_probes
from qa.inference.grounded import GroundedLanguageModel
from qa.inference.grounded_form import answer_passing, prompt_ids
from qa.inference.probe_runner import ActiveProbes
from qa.inference.server import ServerLanguageModel
from qa.pipeline.language_model import (
    NO_CAPTURE,
    Capture,
    Generation,
    KeptActivations,
    Prompt,
)
from tests.probes import tiny_models
from tests.probes.probe_files import activation_files, joint_probe_files
from tests.qa.pipeline.values import make_evidence

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

OWN = "0" * 64  # the tiny model's fingerprint
PROMPT = Prompt(
    "What does the Gold card cost?",
    (make_evidence("The Gold card costs 72 euros a year."),),
    "en",
)
WRITTEN = Generation(
    cited=(1,),
    quotes=(),
    reasoning="",
    can_answer=True,
    verdict_probability=0.9,
    answer="It costs 72 euros.",
    malformed=False,
    repaired=False,
    log_probability=-0.2,
    raw="",
    prompt_tokens=1,
    answer_tokens=1,
    milliseconds=1.0,
    short_answer="72 euros",
)


@pytest.fixture(autouse=True)
def _nothing_loaded():
    sources._probes.clear()


@pytest.fixture(scope="module")
def grounded():
    return GroundedLanguageModel(tiny_models.model("llama", 2_048))


@pytest.fixture
def server(settings, tmp_path):
    """Return a server's model, which nobody reaches, read by a tiny model on disk."""
    settings.SURROGATE_MODEL = str(tiny_models.save(tmp_path / "surrogate"))
    return ServerLanguageModel(
        url="http://127.0.0.1:9/v1", key="", model="m", timeout_seconds=1, retries=0
    )


def at_work(language_model) -> ActiveProbes:
    """Return the probes in force, of which there are some."""
    found = active_probes(language_model)
    assert isinstance(found, ActiveProbes)
    return found


def between(value: float | None) -> float:
    """Return a confidence that is no guess of nothing."""
    assert value is not None
    assert 0 < value < 1
    return value


def put(files: ProbeFiles, state="active") -> Probe:
    return promote(register(files).pk, state, by=None)


def activation(kind=ProbeKind.ABSTENTION, **changes):
    network = Kind.LSTM if kind is ProbeKind.ABSTENTION else Kind.LINEAR
    return activation_files(kind, language_model=OWN, network=network, **changes)


def test_without_a_probe_nothing_is_kept_and_nothing_known(
    grounded, django_assert_num_queries
):
    with django_assert_num_queries(1):
        probes = active_probes(grounded)

    assert probes.fingerprints == ""
    assert probes.capture(least_early=0.5) == NO_CAPTURE
    confidence = probes.read(PROMPT, WRITTEN, {})
    assert (confidence.answer, confidence.missing) == (None, "No probe is in use.")


def test_probes_of_other_models_are_never_asked(grounded):
    put(activation_files(language_model="f" * 64))
    put(joint_probe_files(language_model="f" * 64))

    probes = active_probes(grounded)

    assert probes.fingerprints == ""
    assert probes.read(PROMPT, WRITTEN, {}).missing.startswith("No probe in use was")


def test_an_answer_is_read_from_what_was_kept_on_the_way(grounded, monkeypatch):
    abstention = put(activation(layer=2))
    early = put(activation(ProbeKind.EARLY, layer=1, seed=1))
    shadow = put(activation(layer=0, part="ffn", width=48, seed=2), "shadow")
    probes = active_probes(grounded)
    capture = probes.capture(least_early=None)
    # Probes of the answer read the prompt's last token before it.
    answered = (Tap(0, Part.FFN), Tap(2))
    assert capture == Capture(
        answer=answered, prompt=(answered[0], Tap(1), answered[1]), watch=None
    )

    generation = grounded.generate(PROMPT, capture)
    # Random weights write what is no text.
    rows = len(generation.trace.answer[Tap(2)])
    generation = replace(generation, tokens=("word",) * rows)
    monkeypatch.setattr(
        type(grounded.model), "read_activations", lambda *_: pytest.fail("read again")
    )
    confidence = probes.read(PROMPT, generation, {})

    assert between(confidence.answer)
    assert between(confidence.early)
    assert confidence.joint is None
    assert confidence.along[-1] == confidence.answer
    assert len(confidence.along) == len(generation.tokens)
    assert confidence.probes == f"{abstention.fingerprint} {early.fingerprint}"
    assert probes.fingerprints == confidence.probes
    ((name, value),) = confidence.shadows
    assert name == f"abstention_{shadow.fingerprint[:8]}"
    assert 0 < value < 1
    assert confidence.missing == "No joint probe is active."


def test_what_was_not_kept_is_read_in_one_second_pass(grounded, monkeypatch):
    put(activation(layer=2))
    put(activation(ProbeKind.EARLY, layer=1, seed=1))
    probes = at_work(grounded)
    model, passes = grounded.model, []
    own = type(model).read_activations

    def counted(self, passings, taps):
        passes.append(len(passings))
        return own(self, passings, taps)

    monkeypatch.setattr(type(model), "read_activations", counted)
    confidence = probes.read(PROMPT, WRITTEN, {})

    assert passes == [1]
    monkeypatch.undo()
    answer = answer_passing(model.tokens, PROMPT, "72 euros")
    answer = replace(answer, start=answer.start - 1, end=answer.end - 1)
    (held,) = model.read_activations([answer], [Tap(2)])
    before = Passing.of_last(prompt_ids(model.tokens, PROMPT))
    (first,) = model.read_activations([before], [Tap(1)])
    by_kind = {reader.kind: reader for reader in probes.readers}
    expected = by_kind[ProbeKind.ABSTENTION].along(held[Tap(2)])[-1]
    assert confidence.answer == pytest.approx(expected, abs=1e-4)
    expected = by_kind[ProbeKind.EARLY].along(first[Tap(1)])[-1]
    assert confidence.early == pytest.approx(expected, abs=1e-4)
    assert confidence.along == ()  # nobody knows whose tokens they were


def test_a_probe_that_was_fitted_on_the_answer_alone_reads_it_alone(grounded):
    put(activation(layer=2, opens_with_prompt=False))
    probes = at_work(grounded)
    capture = probes.capture(least_early=None)
    generation = grounded.generate(PROMPT, capture)
    rows = len(generation.trace.answer[Tap(2)])
    generation = replace(generation, tokens=("word",) * rows)

    confidence = probes.read(PROMPT, generation, {})

    assert capture.prompt == ()
    assert len(confidence.along) == rows
    assert between(confidence.answer) == confidence.along[-1]


def test_a_probe_that_was_fitted_with_the_end_token_reads_it_too(grounded):
    put(activation(layer=2, opens_with_prompt=False, closes_with_end=True))
    probes = at_work(grounded)
    random = np.random.default_rng(0)
    answer, end = (random.normal(size=(n, 32)).astype(np.float32) for n in (3, 1))
    place = Tap(2)
    trace = KeptActivations(answer={place: answer}, end={place: end})
    generation = replace(WRITTEN, tokens=("72", " euros", " a"), trace=trace)

    confidence = probes.read(PROMPT, generation, {})

    assert probes.capture(least_early=None).ends
    (reader,) = probes.readers
    *along, last = reader.along(np.concatenate([answer, end]))
    assert confidence.answer == pytest.approx(last)
    assert confidence.along == pytest.approx(along)
    again = probes.read(PROMPT, WRITTEN, {})
    (held,) = grounded.model.read_activations(
        [answer_passing(grounded.model.tokens, PROMPT, "72 euros")], [Tap(2)]
    )
    assert again.answer == pytest.approx(reader.along(held[Tap(2)])[-1], abs=1e-4)


def test_too_little_early_confidence_ends_the_answer_in_mid_pass(grounded):
    put(activation(layer=2))
    early = put(activation(ProbeKind.EARLY, layer=1))
    probes = active_probes(grounded)

    going = grounded.generate(PROMPT, probes.capture(least_early=0.0))
    ended = grounded.generate(PROMPT, probes.capture(least_early=1.0))
    confidence = probes.read(PROMPT, ended, {})

    assert not going.is_stopped
    assert ended.is_stopped
    before = probes.read(PROMPT, going, {}).early
    assert confidence.early == pytest.approx(before, abs=1e-4)
    assert (confidence.answer, confidence.joint) == (None, None)
    assert confidence.probes == early.fingerprint
    assert confidence.missing == ""


def test_a_joint_probe_reads_the_signals_and_the_probes_it_was_fitted_with(grounded):
    abstention = put(activation(layer=2))
    joint = put(
        joint_probe_files(
            language_model=grounded.fingerprint,
            signals=("log_probability", "answer_confidence"),
            inputs={"abstention": abstention.fingerprint},
        )
    )
    probes = at_work(grounded)

    confidences = [
        probes.read(PROMPT, WRITTEN, {"log_probability": value}) for value in (0.1, 0.9)
    ]

    low, high = (between(confidence.joint) for confidence in confidences)
    assert low < high
    assert confidences[0].probes == f"{abstention.fingerprint} {joint.fingerprint}"
    (reader,) = probes.joints
    own = {"log_probability": 0.1, "answer_confidence": confidences[0].answer}
    assert low == reader.probe.confidence(own)


def test_a_joint_probe_without_its_inputs_is_left_out_and_says_so(grounded, caplog):
    first, second = register(activation(seed=0)), activation(seed=1)
    put(second)
    put(
        joint_probe_files(
            language_model=grounded.fingerprint,
            signals=("log_probability", "answer_confidence"),
            inputs={"abstention": first.fingerprint},
        )
    )

    with caplog.at_level(logging.ERROR):
        confidence = active_probes(grounded).read(PROMPT, WRITTEN, {})

    assert confidence.joint is None
    assert confidence.answer is not None
    assert "which is not in use" in confidence.missing
    assert "is left out" in caplog.text


def _damage_weights(probe):
    Probe.objects.filter(pk=probe.pk).update(weights=b"nothing")


def _damage_card(probe):
    Probe.objects.filter(pk=probe.pk).update(card="{}")


@pytest.mark.parametrize("damage", [_damage_weights, _damage_card])
def test_a_damaged_probe_is_left_out_and_answering_goes_on(grounded, damage, caplog):
    probe = put(activation())
    early = put(activation(ProbeKind.EARLY))
    damage(probe)

    with caplog.at_level(logging.ERROR):
        probes = active_probes(grounded)
        generation = grounded.generate(PROMPT, probes.capture(least_early=None))
        confidence = probes.read(PROMPT, generation, {})

    assert confidence.answer is None
    assert "fit it again" in confidence.missing
    assert confidence.probes == early.fingerprint
    assert caplog.text.count("is left out") == 1


@pytest.mark.parametrize(
    "changes", [{"layer": 3}, {"width": 31}, {"part": "ffn"}], ids=str
)
def test_a_probe_that_does_not_fit_the_model_is_left_out(grounded, changes):
    put(activation(**changes))

    probes = active_probes(grounded)

    assert probes.capture(least_early=None) == NO_CAPTURE
    assert probes.read(PROMPT, WRITTEN, {}).answer is None


def test_a_probe_of_another_form_is_left_out(grounded):
    files = activation()
    other = replace(files, card=files.card.replace(b"grounded-1", b"grounded-0"))
    put(other)

    assert "grounded-0" in active_probes(grounded).read(PROMPT, WRITTEN, {}).missing


def test_an_answer_that_does_not_fit_the_context_is_read_by_no_probe(grounded):
    put(activation())
    long = replace(WRITTEN, short_answer="x" * 2_100)

    confidence = active_probes(grounded).read(PROMPT, long, {})

    assert confidence.answer is None
    assert "2048" in confidence.missing


def test_endless_activations_give_no_confidence(grounded):
    put(activation(layer=2))
    probes = active_probes(grounded)
    generation = grounded.generate(PROMPT, probes.capture(least_early=None))
    generation.trace.answer[Tap(2)][:] = np.inf

    confidence = probes.read(PROMPT, generation, {})

    assert confidence.answer is None
    assert confidence.probes == ""


def test_probes_are_loaded_once_and_again_when_the_registry_changes(
    grounded, django_assert_num_queries
):
    first = put(activation(seed=0))
    probes = active_probes(grounded)

    with django_assert_num_queries(1):
        assert active_probes(grounded) is probes
    second = put(activation(seed=1))
    assert active_probes(grounded).fingerprints == second.fingerprint
    promote(first.pk, "active", by=None)
    assert active_probes(grounded).fingerprints == first.fingerprint
    retire(first.pk, by=None)
    assert active_probes(grounded).fingerprints == ""


def test_a_servers_answers_are_read_by_a_surrogate(server):
    files = activation_files(language_model=surrogate_fingerprint(server))
    probe = put(files)
    joint = put(joint_probe_files(language_model=server.fingerprint))

    confidence = active_probes(server).read(
        PROMPT, WRITTEN, {"verdict_probability": 0.9}
    )

    assert between(confidence.answer)
    assert between(confidence.joint)
    assert confidence.probes == f"{probe.fingerprint} {joint.fingerprint}"


def surrogate_fingerprint(server):
    from qa.inference.white_box import load_white_box

    model = load_white_box(server)
    assert model is not None
    return model.fingerprint


def test_a_surrogate_that_is_not_there_leaves_answering_alone(server, settings, caplog):
    put(activation())
    settings.SURROGATE_MODEL = "/nowhere/at-all"

    with caplog.at_level(logging.ERROR):
        probes = active_probes(server)
        again = active_probes(server)

    assert "/nowhere/at-all" in probes.read(PROMPT, WRITTEN, {}).missing
    assert again is probes  # not tried again with every question
    assert caplog.text.count("cannot be loaded") == 1


def test_without_a_surrogate_only_the_signals_are_read(server, settings):
    settings.SURROGATE_MODEL = "none"
    put(activation())
    put(joint_probe_files(language_model=server.fingerprint))

    confidence = active_probes(server).read(
        PROMPT, WRITTEN, {"verdict_probability": 0.9}
    )

    assert confidence.answer is None
    assert confidence.joint is not None


def test_several_threads_read_the_same_numbers(grounded):
    put(activation(layer=2))
    probes = active_probes(grounded)
    expected = probes.read(PROMPT, WRITTEN, {}).answer
    found = []

    def read():
        found.append(probes.read(PROMPT, WRITTEN, {}).answer)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [expected] * 4
