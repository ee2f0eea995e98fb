"""CtrlA's monitor as one decider among others."""

from dataclasses import dataclass

import pytest

from qa.inference.monitored_writer import SteeredWriter
from qa.pipeline.monitored import Draft
from qa.pipeline.values import Question
from studies.cbdr.timing.deciders import SelfKnowledgeByMonitor
from tests.probes import tiny_models
from tests.probes.direction_files import made_directions

ASKED = Question("Who discovered radium?")


@dataclass
class GivenWriter:
    """Writes the sentence that it was given."""

    tokens: tuple[str, ...]
    confidences: tuple[float, ...]
    fingerprint: str = "w" * 64
    steered: float | None = None

    def write(self, question, notes, kept, *, steering):
        self.steered = steering
        return Draft("".join(self.tokens), self.tokens, self.confidences, is_last=True)

    def validation_query(self, question, segment):
        raise AssertionError("nobody validates here")

    def rewritten_query(self, question, query):
        raise AssertionError("nobody rewrites here")


def considered(*pairs: tuple[str, float], steering: float = 0.3):
    tokens, confidences = zip(*pairs, strict=True)
    writer = GivenWriter(tokens, confidences)
    found = SelfKnowledgeByMonitor(writer, steering=steering).consider(ASKED)
    assert writer.steered == steering
    return found


def test_the_least_confident_new_word_decides():
    found = considered(("Radium", -9.0), (" was", -9.0), (" Curie", 1.0), ("'s", 0.5))

    # "Radium" is in the question and "was" in every text.
    assert dict(found.signals)["least_token_confidence"] == 1.0
    assert found.known_probability == pytest.approx(
        0.731, abs=1e-3
    )  # the logistic of 1
    assert found.answer().answer == "Radium was Curie's"


def test_less_confidence_is_less_sure_and_stays_a_share():
    values = [
        considered(("Curie", v)).known_probability
        for v in (-30.0, -1.0, 0.0, 2.0, 30.0)
    ]

    assert values == sorted(values)
    assert values[2] == 0.5
    assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize(
    "pairs",
    [(("Radium", 3.0),), (("I", 3.0), (" don't", 3.0), (" know", 3.0), (".", 3.0))],
)
def test_what_says_nothing_new_or_declines_can_not_be_told(pairs):
    assert considered(*pairs).known_probability is None


def test_another_strength_of_steering_is_another_decider():
    model = tiny_models.model("llama", 4_096)
    writer = SteeredWriter(model, made_directions(), fingerprint="d" * 64)

    first, second = (SelfKnowledgeByMonitor(writer, steering=s) for s in (0.0, 0.5))

    assert first.fingerprint != second.fingerprint
    found = first.consider(ASKED)
    assert found.known_probability is None or 0 <= found.known_probability <= 1
