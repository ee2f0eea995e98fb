import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu import Connection

from workers import broker as file_broker

file_broker.install()


@pytest.fixture
def queue(tmp_path):
    with Connection("filesystem://", transport_options={"data_folder": tmp_path}) as it:
        yield it.SimpleQueue("celery")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "queues" / "celery"


def test_messages_come_out_in_the_order_in_which_they_went_in(queue):
    for number in range(30):
        queue.put({"n": number})

    assert [queue.get(timeout=1).payload["n"] for _ in range(30)] == list(range(30))


def test_each_message_is_taken_once_and_leaves_nothing_behind(queue, folder, tmp_path):
    queue.put({"n": 1})

    queue.get(timeout=1).ack()

    with pytest.raises(queue.Empty):
        queue.get(block=False)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"body": '])
def test_an_unreadable_message_is_dropped_and_the_next_one_delivered(
    queue, folder, content, caplog
):
    queue.put({"n": 1})
    (folder / "00000-broken").write_bytes(content)

    assert queue.get(timeout=1).payload == {"n": 1}
    assert "unreadable" in caplog.text


def test_a_message_that_is_not_written_to_its_end_is_not_seen(queue, tmp_path):
    (tmp_path / "in_hand").mkdir(parents=True, exist_ok=True)
    (tmp_path / "in_hand" / "part").write_text("{")

    with pytest.raises(queue.Empty):
        queue.get(block=False)


def test_what_a_killed_process_had_in_hand_is_swept_away(tmp_path):
    hand = tmp_path / "in_hand"
    hand.mkdir()
    for name, age in {"old": 7200, "new": 10}.items():
        (hand / name).write_text("{}")
        os.utime(hand / name, (time.time() - age,) * 2)

    with Connection("filesystem://", transport_options={"data_folder": tmp_path}) as it:
        it.SimpleQueue("celery")

    assert [file.name for file in hand.iterdir()] == ["new"]


def test_the_size_is_known_and_a_purge_empties(queue):
    for number in range(3):
        queue.put({"n": number})

    assert queue.qsize() == 3
    assert queue.clear() == 3
    assert queue.qsize() == 0


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_any_json_comes_out_as_it_went_in(tmp_path_factory, payload):
    folder = tmp_path_factory.mktemp("broker")
    with Connection("filesystem://", transport_options={"data_folder": folder}) as it:
        queue = it.SimpleQueue("celery")
        queue.put(payload)

        assert queue.get(timeout=1).payload == payload
