"""The file of entries as tokens: found again, never of another model, bounded."""

import multiprocessing
import sqlite3

import numpy as np
import pytest

from probes.verifier import token_file
from probes.verifier.card import base_directory
from probes.verifier.entry_tokens import EntryTokens
from probes.verifier.reading import Reader
from probes.verifier.token_file import TokenFile

CARD = ("Fees", "What does a card cost?", "A card costs 12 euros.")
BRANCH = ("", "", "The branch opens at nine. " * 60)
MODEL = "model"


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(base_directory())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "below" / "tokens.sqlite3"


def opened(path, *, model: str = MODEL, max_bytes: int = 1 << 24) -> TokenFile:
    return TokenFile(path, model=model, max_bytes=max_bytes)


def read(reader, *texts):
    return {text: reader.read(reader.windows(*text)) for text in texts}


def is_same(one, other) -> bool:
    names = ("states", "ids", "parts", "vectors")
    return len(one) == len(other) and all(
        np.array_equal(getattr(mine, name), getattr(theirs, name))
        and getattr(mine, name).dtype == getattr(theirs, name).dtype
        for mine, theirs in zip(one, other, strict=True)
        for name in names
    )


def test_what_was_kept_is_found_bit_for_bit(reader, path):
    kept = read(reader, CARD, BRANCH)
    opened(path).keep(kept)

    found = opened(path).find([BRANCH, CARD, ("", "", "Another text.")])

    assert {*found} == {CARD, BRANCH}
    assert len(found[BRANCH]) > 1
    assert all(is_same(found[text], kept[text]) for text in kept)
    assert path.stat().st_mode & 0o077 == 0


def test_another_model_or_text_finds_nothing(reader, path):
    opened(path).keep(read(reader, CARD))
    assert opened(path, model="another").find([CARD]) == {}
    place, question, text = CARD
    assert opened(path).find([("", f"{place}{question}", text)]) == {}


def test_a_text_is_gone_after_some_days(reader, path, monkeypatch):
    file = opened(path)
    file.keep(read(reader, CARD))
    monkeypatch.setattr(token_file, "_KEPT_DAYS", -1)
    assert file.find([CARD]) == {}
    monkeypatch.undo()
    assert [*file.find([CARD])] == [CARD]

    with sqlite3.connect(path) as rows:
        rows.execute("UPDATE texts SET read = 0")
    file.keep(read(reader, BRANCH))
    with sqlite3.connect(path) as rows:
        assert rows.execute("SELECT count(*) FROM texts").fetchone() == (1,)


@pytest.mark.slow
def test_a_full_file_drops_the_oldest_and_stays_within_its_limit(reader, path):
    limit = 2 << 20
    file = opened(path, max_bytes=limit)
    texts = [("", "", f"Card {at} costs {at} euros. " * 20) for at in range(60)]
    for text in texts:
        file.keep(read(reader, text))

    found = file.find(texts)

    assert 5 < len(found) < len(texts)
    assert {*found} == {*texts[-len(found) :]}
    assert path.stat().st_size < 1.2 * limit


def test_entries_in_the_file_are_not_read_again(reader, path, monkeypatch):
    texts = [CARD, BRANCH]
    first = EntryTokens(reader, opened(path)).windows(texts)
    monkeypatch.setattr(Reader, "read", lambda *_: pytest.fail("read again"))

    again = EntryTokens(reader, opened(path))

    assert all(map(is_same, again.windows([*texts, CARD]), [*first, first[0]]))
    path.unlink()
    assert all(map(is_same, again.windows(texts), first))  # from memory


@pytest.mark.parametrize("spoil", ["damaged", "locked"])
def test_a_damaged_entry_or_a_busy_file_costs_that_entry_only(
    reader, path, spoil, caplog, monkeypatch
):
    monkeypatch.setattr(token_file, "_WAIT_SECONDS", 0.01)
    kept = read(reader, CARD)
    opened(path).keep(kept)
    other = sqlite3.connect(path)
    if spoil == "damaged":
        other.execute("UPDATE texts SET tokens = x'00'")
        other.commit()
    else:
        other.execute("BEGIN IMMEDIATE")
    file = opened(path)

    (found,) = EntryTokens(reader, file).windows([CARD])
    assert is_same(found, kept[CARD])
    assert ("damaged" in caplog.text) == (spoil == "damaged")
    file.keep(read(reader, BRANCH))  # not kept while the other one writes
    other.rollback()
    other.close()

    assert is_same(file.find([CARD])[CARD], kept[CARD])
    assert (BRANCH in file.find([BRANCH])) == (spoil == "damaged")


@pytest.mark.parametrize("spoil", ["a file", "no database"])
def test_a_file_that_cannot_be_used_costs_time_and_nothing_else(
    reader, path, spoil, caplog, monkeypatch
):
    monkeypatch.setattr(token_file, "_WAIT_SECONDS", 0.01)
    wanted = read(reader, CARD)[CARD]
    if spoil == "a file":
        path.parent.write_text("in the way")
    else:
        path.parent.mkdir()
        path.write_text("This is not SQLite. " * 100)

    file = opened(path)
    (found,) = EntryTokens(reader, file).windows([CARD])

    assert is_same(found, wanted)
    assert "tokens.sqlite3" in caplog.text
    file.keep(read(reader, BRANCH))
    caplog.clear()
    assert file.find([CARD]) == {}
    file.keep({CARD: wanted})
    assert not caplog.text  # not tried again, nor said again, at once


def _find(file: TokenFile, answer) -> None:
    answer.put(len(file.find([CARD])))


def test_a_fork_opens_it_anew(reader, path):
    file = opened(path)
    file.keep(read(reader, CARD))
    fork = multiprocessing.get_context("fork")
    answer = fork.Queue()
    child = fork.Process(target=_find, args=(file, answer))
    child.start()
    child.join(30)
    assert answer.get(timeout=5) == 1
    assert file._opened
    assert [*file.find([CARD])] == [CARD]
