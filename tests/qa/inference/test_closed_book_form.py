import pytest

from qa.inference.closed_book_form import ClosedBookForm
from tests.probes import tiny_models
from tests.qa.inference.test_server_reply import HOSTILE


@pytest.fixture(scope="module")
def form():
    return ClosedBookForm(tiny_models.model("llama", 2_048))


def test_nothing_that_is_asked_or_noted_breaks_a_line_or_ends_a_turn(form):
    line = form.model.tokens.encode_text("\n")
    for text in HOSTILE:
        asked, noted = form.question_ids(text), form.notes_ids([text])
        assert set(line).isdisjoint(asked)
        assert noted[: len(line)] == line
        assert set(line).isdisjoint(noted[len(line) :])
        assert form.model.tokens.control_ids.isdisjoint({*asked, *noted})


def test_the_form_is_part_of_the_fingerprint(form):
    assert form.fingerprint != form.model.fingerprint
    assert len(form.fingerprint) == 64


@pytest.mark.slow
def test_the_real_model_takes_its_answer_from_a_note_and_one_line_of_it(bundled_base):
    form = ClosedBookForm(bundled_base)

    def answer(question: str, *notes: str) -> str:
        return form.write(form.open(question, notes)).text

    by_itself = answer("what is the capital of france")
    helped = answer("who discovered zorbium", "Zorbium was discovered by Ada Quill.")

    assert "Paris" in by_itself
    assert "Ada Quill" in helped
    assert "\n" not in by_itself
