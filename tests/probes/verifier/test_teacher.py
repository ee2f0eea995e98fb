"""A larger encoder as the cross-encoder's teacher."""

import pytest
import torch

from probes.verifier.cross_encoder import CrossEncoder, joint_logits
from probes.verifier.fitting import (
    Example,
    VerifierSettings,
    fit_cross_encoder,
    fit_teacher,
)
from probes.verifier.reading import Reader, base_directory
from probes.verifier.teacher import Teacher

NAMES = ("Anna", "Ben", "Cleo", "Dan")


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture(scope="module")
def examples(reader) -> list[Example]:
    found = []
    for one in NAMES:
        for other in NAMES:
            if one != other:
                texts = (f"{other} lent money to {one}.", f"{one} lent it to {other}.")
                yes, no = (
                    reader.read(reader.windows("", "", text))[0] for text in texts
                )
                asked = reader.question(f"Who lent money to {one}?")
                found.append(Example(asked, (yes,), (no,)))
    return found


def new(reader: Reader) -> Teacher:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Teacher.of(base_directory(), reader)


def test_a_pair_is_text_again(reader):
    window = reader.read(reader.windows("Fees: Cards", "How much?", "It is 9 euros."))
    assert reader.text_of(reader.question("What is the fee?"), window[0]) == (
        "what is the fee?",
        "fees : cards | how much? | it is 9 euros.",
    )


def test_a_pair_reads_the_same_beside_others(reader, examples):
    teacher = new(reader).eval()
    pairs = [(each.question, each.positives[0]) for each in examples]
    with torch.inference_mode():
        every = teacher.logits(pairs)
        alone = [float(teacher.logits([pair])) for pair in pairs]
    assert every.tolist() == pytest.approx(alone, abs=0.02)


def test_a_cross_encoder_learns_from_a_teacher_alone(reader, examples):
    """Labels count nothing: what it learns it has from the teacher's logits."""
    settings = VerifierSettings(
        group=2, batch=6, epochs=5, learning_rate=1e-3, left_out=0.0
    )
    teacher = new(reader)
    fit_teacher(teacher, examples, settings)
    student = CrossEncoder.of(base_directory()).eval()
    unlabelled = [
        Example(each.question, (), (*each.positives, *each.negatives))
        for each in examples
    ]
    only_taught = VerifierSettings(
        group=2, batch=6, epochs=5, learning_rate=1e-3, by_teacher=1.0
    )
    fit_cross_encoder(student, reader, unlabelled, only_taught, teacher=teacher)
    yes = [(each.question, each.positives[0]) for each in examples]
    no = [(each.question, each.negatives[0]) for each in examples]
    with torch.inference_mode():
        gap = joint_logits(student, reader, yes) - joint_logits(student, reader, no)
    assert float((gap > 0).float().mean()) > 0.9
