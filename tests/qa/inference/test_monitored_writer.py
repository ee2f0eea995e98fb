"""The steered and watched writer, on tiny random models and on the bundled one."""

import pytest

from probes.models import Probe
from probes.services import promote, register
from qa.exceptions import LanguageModelUnavailableError
from qa.inference.monitored_writer import (
    SteeredWriter,
    _draft,
    _holds_a_sentence,
    monitored_writer,
)
from qa.inference.policy_models import load_closed_book_form
from qa.inference.white_box import token_texts
from qa.pipeline.monitored import answer_monitored
from qa.pipeline.values import Question
from tests.probes import tiny_models
from tests.probes.direction_files import (
    direction_probe_files,
    made_directions,
    random_directions,
)
from tests.qa.inference.test_server_reply import HOSTILE
from tests.qa.pipeline.values import (
    GivenRetriever,
    make_evidence,
    make_policy,
    make_retrieval,
)

pytestmark = pytest.mark.slow

NOTES = (make_evidence("Radium was discovered by Marie Curie."),)


@pytest.fixture(scope="module", params=["llama", "gemma2"])
def writer(request):
    model = tiny_models.model(request.param, 4_096)
    return SteeredWriter(model, made_directions(), fingerprint="d" * 64)


@pytest.fixture(scope="module")
def bundled_writer(bundled_base):
    directions = random_directions(bundled_base)
    return SteeredWriter(bundled_base, directions, fingerprint="d" * 64)


@pytest.mark.parametrize("notes", [(), NOTES])
@pytest.mark.parametrize("steering", [0.0, 0.5])
def test_a_segment_is_its_tokens_each_with_a_confidence(writer, notes, steering):
    draft = writer.write("who found radium", notes, (), steering=steering)

    assert "".join(draft.tokens) == draft.text == draft.text.strip()
    assert len(draft.tokens) == len(draft.confidences)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_data(writer, text):
    draft = writer.write(text, [make_evidence(text)], [text], steering=0.1)

    assert "\n" not in draft.text
    assert "\n" not in writer.validation_query(text, text)
    assert "\n" not in writer.rewritten_query(text, text)


def test_directions_and_forms_are_part_of_the_fingerprint(writer):
    other = SteeredWriter(writer.model, made_directions(), fingerprint="e" * 64)

    assert len(writer.fingerprint) == 64
    assert other.fingerprint != writer.fingerprint


def test_the_cached_prefix_is_never_steered(bundled_writer):
    before = bundled_writer.write("who wrote dracula", (), (), steering=0)

    bundled_writer.write("who wrote dracula", (), (), steering=20.0)

    assert bundled_writer.write("who wrote dracula", (), (), steering=0) == before


def test_what_follows_a_sentence_goes_on_from_it(bundled_writer):
    asked = "What is the capital of the country in which the Eiffel Tower stands?"

    draft = bundled_writer.write(
        asked, (), ["The Eiffel Tower stands in France."], steering=0
    )

    assert draft.text == "The capital of France is Paris."
    assert draft.is_last


def test_writing_ends_when_the_next_sentence_begins(writer):
    script = " Dr. Wu was there. And so"
    ids = writer.model.tokens.encode_text(script)
    prompt = writer.model.read(ids[:1])

    written = writer.model.generate(
        prompt,
        max_tokens=99,
        allowed=lambda so_far: [ids[len(so_far)]],
        taps=writer.directions.taps,
        enough=_holds_a_sentence,
    )
    confidences = list(range(len(written.ids)))
    draft = _draft(written, token_texts(written.ids, writer.model.tokens), confidences)

    assert written.text == " Dr. Wu was there. A"
    assert (draft.text, draft.is_last) == ("Dr. Wu was there.", False)
    # Neither the space before it nor the next sentence's beginning.
    assert draft.confidences == tuple(range(1, 18))


def test_notes_are_answered_from(bundled_writer):
    note = make_evidence("The ferry to Herm takes twenty minutes.")

    draft = bundled_writer.write(
        "How long does the ferry to Herm take?", [note], (), steering=0
    )

    assert "twenty" in draft.text


def test_the_bundled_model_answers_monitored(bundled_writer):
    note = make_evidence("The ferry to Herm takes twenty minutes.", distance=0.3)

    found = answer_monitored(
        Question("How long does the ferry to Herm take?"),
        writer=bundled_writer,
        retriever=GivenRetriever(make_retrieval(note)),
        policy=make_policy(steering=0.0, min_token_confidence=1000.0),
    )

    assert "twenty" in found.answer
    assert found.evidence == (note,)


@pytest.mark.django_db
def test_the_directions_in_force_are_taken_and_others_refused(settings):
    settings.LANGUAGE_MODEL = "bundled"
    with pytest.raises(LanguageModelUnavailableError, match="train directions"):
        monitored_writer()

    directions = random_directions(load_closed_book_form().model)
    probe = register(direction_probe_files(directions))
    promote(probe.pk, Probe.State.ACTIVE, by=None)

    writer = monitored_writer()
    assert monitored_writer() is writer
    assert writer.directions.language_model == load_closed_book_form().model.fingerprint
