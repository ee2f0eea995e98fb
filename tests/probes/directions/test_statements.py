"""Pairs of texts that directions are fitted on."""

import re

import pytest

from probes.directions.statements import (
    Trait,
    draw_contrasts,
    read_confident_statements,
    read_true_statements,
)
from probes.exceptions import StatementFileError
from probes.language_model import Tokens
from tests.probes.tiny_models import tokenizer

ABOUT = re.compile(r"number (\d+) ")
STATEMENTS = [f"Statement number {number} is about cats." for number in range(40)]


@pytest.fixture(scope="module")
def tokens():
    return Tokens(tokenizer())


@pytest.mark.parametrize(
    ("trait", "words"),
    [
        (Trait.HONESTY, ("an honest", "an untruthful")),
        (Trait.CONFIDENCE, ("a confident", "an unconfident")),
    ],
)
def test_both_sides_differ_in_the_instruction_alone(tokens, trait, words):
    (pair,) = draw_contrasts(tokens, STATEMENTS[:1], trait, count=1, seed=3)

    up, down = tokens.decode(pair.positive), tokens.decode(pair.negative)
    assert f" {words[0]} person" in up
    assert up.replace(words[0], words[1]) == down
    assert pair.positive[-1] == pair.negative[-1]


def test_the_instruction_is_given_through_the_models_own_template(tokens):
    (pair,) = draw_contrasts(tokens, STATEMENTS[:1], Trait.HONESTY, count=1, seed=0)

    assert tokens.control_ids & set(pair.positive)


def test_a_seed_and_not_the_files_order_draws_the_pairs(tokens):
    def drawn(seed):
        pairs = draw_contrasts(tokens, STATEMENTS, Trait.HONESTY, count=30, seed=seed)
        return [tokens.decode(pair.positive) for pair in pairs]

    assert drawn(1) == drawn(1) != drawn(2)
    about = [found[1] for text in drawn(1) if (found := ABOUT.search(text))]
    assert max(map(int, about)) > 30


def test_no_pair_is_drawn_twice_and_none_reaches_a_statements_end(tokens):
    pairs = draw_contrasts(tokens, ["I am a cat."], Trait.CONFIDENCE, count=100, seed=0)

    said = [tokens.decode(pair.positive).splitlines()[-1] for pair in pairs]
    assert sorted(said) == sorted({"I", "I ", "I a", "I am", "I am ", "I am a"})


def test_true_statements_alone_are_read(tmp_path):
    file = tmp_path / "facts.csv"
    file.write_text(
        '\ufeffstatement,label\n"Fire, too, is hot.",1\nIce is hot.,0\nA.,1\nA.,1\n',
        encoding="utf-8",
    )

    assert read_true_statements(file) == ["Fire, too, is hot.", "A."]


@pytest.mark.parametrize(
    "text", ["text,label\nA.,1\n", "statement,label\nA.,0\n", "statement,label\nA.\n"]
)
def test_a_file_without_true_statements_is_refused_by_its_name(tmp_path, text):
    file = tmp_path / "facts.csv"
    file.write_text(text)

    with pytest.raises(StatementFileError, match=r"facts\.csv"):
        read_true_statements(file)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(StatementFileError, match="none"):
        read_true_statements(tmp_path / "none")


def test_our_own_statements_are_as_many_of_each_and_all_different():
    confident, unconfident = read_confident_statements()

    assert len(confident) == len(unconfident) == 120
    assert len({*confident, *unconfident}) == 240


@pytest.mark.parametrize("line", ["[]", '{"confident": "A."}', "A."])
def test_a_file_that_holds_no_such_pairs_is_refused(tmp_path, line):
    file = tmp_path / "own.jsonl"
    file.write_text(line)

    with pytest.raises(StatementFileError, match="a confident and an unconfident"):
        read_confident_statements(file)
