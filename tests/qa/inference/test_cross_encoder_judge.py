"""The judge on the verifier's cross-encoder: as shipped, and by a head that fits no verifier."""

from dataclasses import replace

import pytest

from kb.conflicts.judgement import judge
from kb.conflicts.values import Kind, Statement, with_opinion
from kb.embedding.embedder import load_embedder
from probes.exceptions import VerifierFileError
from qa.inference.configured import configured_judge
from qa.inference.cross_encoder_judge import CrossEncoderJudge, load_head, save_head
from qa.inference.verifier import load_verifier

pytestmark = [pytest.mark.verifier, pytest.mark.slow]

# Nothing was fitted on them, the signals alone hold each of them different, and the judge is
# as sure of them in each precision.
PAIRS = [
    (
        "Cards that were lost are replaced free of charge.",
        "There is no fee for a new card if yours got lost.",
        Kind.DUPLICATE,
    ),
    (
        "Visitors may park behind the building at no charge.",
        "Parking at the rear of the building costs visitors 4 pounds a day.",
        Kind.CONTRADICTION,
    ),
    (
        "Home visits are requested by phone before 10 am.",
        "Repeat prescriptions are ordered through the app.",
        Kind.DIFFERENT,
    ),
]


def statements():
    return [(Statement(one), Statement(other)) for one, other, _ in PAIRS]


def test_it_finds_what_is_said_in_other_words_whichever_comes_first():
    found = configured_judge()
    assert isinstance(found, CrossEncoderJudge)
    opinions = found.weigh(statements())
    turned = found.weigh([(other, one) for one, other in statements()])

    embedder = load_embedder("bundled")
    for (one, other), (*_, kind), opinion in zip(
        statements(), PAIRS, opinions, strict=True
    ):
        vectors = embedder.encode([one.text, other.text])
        distance = float(((vectors[0] - vectors[1]) ** 2).sum() ** 0.5)
        judged = with_opinion(judge(one, other, distance=distance), opinion)
        assert judged.probabilities[kind] == max(judged.probabilities.values())
        assert sum(map(opinion.of, Kind)) == pytest.approx(1)
    for one, other in zip(opinions, turned, strict=True):
        assert one.contradiction == pytest.approx(other.contradiction, abs=0.02)
    assert found.weigh([]) == []


def test_the_same_words_are_a_duplicate_without_being_read():
    found = configured_judge()
    assert isinstance(found, CrossEncoderJudge)
    one = Statement("Open Monday to Friday | Closed on Sundays.")
    other = Statement("open monday to friday | closed on sundays")

    (opinion,) = found.weigh([(one, other)])

    assert opinion.duplicate == 1


def test_a_head_of_another_cross_encoder_or_a_damaged_one_is_told(tmp_path):
    verifier = load_verifier()
    other = replace(load_head(), cross_encoder="0" * 64)
    with pytest.raises(VerifierFileError, match="--fit-head"):
        CrossEncoderJudge(verifier, other)

    path = tmp_path / "head.safetensors"
    save_head(other, path)
    assert load_head(path).cross_encoder == other.cross_encoder
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(VerifierFileError, match="cannot be read"):
        load_head(path)


def test_no_judge_where_none_is_wanted(settings):
    settings.CONFLICT_JUDGE = "none"

    assert configured_judge() is None
