import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.adapter.fitting import Example, make_batch, make_batches

EXAMPLES = st.builds(
    Example,
    st.lists(st.integers(1, 99), min_size=1, max_size=12).map(tuple),
    st.lists(st.integers(1, 99), min_size=1, max_size=5).map(tuple),
)


@given(st.lists(EXAMPLES, min_size=1, max_size=6))
def test_a_batch_holds_each_example_behind_its_padding(examples):
    batch = make_batch(examples)

    for row, example in enumerate(examples):
        ids = (*example.prompt, *example.answer)
        assert batch.ids[row, -len(ids) :].tolist() == list(ids)
        assert batch.mask[row].sum() == len(ids)
        assert batch.mask[row, -len(ids) :].all()
        learnt = batch.targets[row][batch.targets[row] >= 0]
        assert learnt.tolist() == list(example.answer)
        assert batch.targets[row, -1] == example.answer[-1]


@given(st.lists(EXAMPLES, min_size=1, max_size=40), st.integers(1, 8))
def test_every_example_comes_once(examples, size):
    batches = list(make_batches(examples, size, random.Random(1)))

    assert max(map(len, batches)) <= size
    seen = sorted(id(example) for batch in batches for example in batch)
    assert seen == sorted(map(id, examples))


@pytest.mark.parametrize(("prompt", "answer"), [((), (1,)), ((1,), ())])
def test_an_example_without_a_prompt_or_an_answer_is_refused(prompt, answer):
    with pytest.raises(ValueError, match="tokens of prompt"):
        Example(prompt, answer)
