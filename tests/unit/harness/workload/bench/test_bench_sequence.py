"""Numbered messages: created in batches, checked in blocks."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import sequence as naive
from tests.unit.harness.workload.numbered_frames import DATA, PAD, frame
from windtunnel.harness.artifact.run.bench_board import Fault
from windtunnel.harness.workload.bench.bench_sequence import Batch, check_block, renumber

WORDS = {
    "ok": Fault.NONE,
    "sequence": Fault.SEQUENCE,
    "length": Fault.LENGTH,
    "broken frame": Fault.BROKEN_FRAME,
}


SOURCE = 1 << 40


def check(block: bytes, expected: int, message_length: int) -> tuple[int, int, int]:
    """Check a block of the only source. Returns its next number, the fault, and what was found."""
    due = np.array([expected])
    fault, wanted, found = check_block(np.frombuffer(block, np.int64), due, message_length)
    assert fault != Fault.SEQUENCE or wanted == due[0]
    return int(due[0]), int(fault), int(found)


def test_counts_messages_in_order_and_passes_over_padding():
    block = frame(5) + frame(6) + frame(0, 100, PAD) + frame(7)
    assert check(block, 5, 8) == (8, Fault.NONE, 0)


def test_each_source_has_numbers_of_its_own():
    block = frame(5) + frame(SOURCE + 1) + frame(6) + frame(SOURCE + 2)
    due = np.array([5, 1])
    assert check_block(np.frombuffer(block, np.int64), due, 8) == (Fault.NONE, 0, 0)
    assert due.tolist() == [7, 3]
    again = np.frombuffer(frame(SOURCE + 2), np.int64)
    assert check_block(again, due, 8) == (Fault.SEQUENCE, 3, 2)
    unknown = np.frombuffer(frame(2 * SOURCE + 7), np.int64)
    assert check_block(unknown, due, 8) == (Fault.SEQUENCE, 7, 2 * SOURCE + 7)


@pytest.mark.parametrize(
    ("numbers", "found"), [((5, 7), 7), ((5, 5), 5), ((5, 4), 4), ((5, -1), -1)], ids=str
)
def test_says_which_message_came_instead(numbers, found):
    block = b"".join(frame(each) for each in numbers)
    assert check(block, 5, 8) == (6, Fault.SEQUENCE, found)


@pytest.mark.parametrize("length", [0, 7, 9, 4_000])
def test_refuses_a_message_of_another_length(length):
    assert check(frame(5) + frame(6, length), 5, 8) == (6, Fault.LENGTH, length)


def test_refuses_a_frame_that_its_block_does_not_hold():
    assert check(frame(5, 100)[:96], 5, 100) == (5, Fault.LENGTH, 100)


@pytest.mark.parametrize("length", [0, 31, -40])
def test_refuses_what_is_no_frame(length):
    block = struct.pack("<i28x", length)
    assert check(block, 5, 8) == (5, Fault.BROKEN_FRAME, length & 0xFFFFFFFF)


def test_finds_nothing_wrong_with_an_empty_block():
    assert check(b"", 5, 8) == (5, Fault.NONE, 0)


FRAMES = st.builds(
    frame,
    st.builds(
        lambda source, number: source * SOURCE + number, st.integers(-1, 2), st.integers(0, 2)
    ),
    st.sampled_from([8, 8, 8, 9, 40]),
    st.sampled_from([DATA, DATA, PAD]),
)


@given(st.lists(FRAMES, max_size=6), st.data())
def test_agrees_with_its_naive_twin(frames, data):
    block = bytearray(b"".join(frames))
    if block and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(block) - 1))
        block[at] = data.draw(st.integers(0, 255))
    length = data.draw(st.sampled_from([8, 9, 40]))
    word, wanted, found, due = naive.check_block(bytes(block), {0: 0, 1: 0}, length)
    numbers = np.zeros(2, np.int64)
    checked = check_block(np.frombuffer(block, np.int64), numbers, length)
    assert checked == (WORDS[word], wanted, found)
    assert dict(enumerate(numbers.tolist())) == due


@pytest.mark.parametrize("length", [8, 32, 1344, 100_000])
def test_batches_are_numbered_on(length):
    batch = Batch(length)
    messages, numbers, lengths = batch.arrays
    assert lengths.sum() == messages.size == batch.count * length
    for first in (0, batch.count):
        rows = messages.reshape(batch.count, length)[:, :8]
        written = np.ascontiguousarray(rows).view(np.int64)[:, 0]
        assert written.tolist() == list(range(first, first + batch.count))
        renumber(numbers)


def test_the_numbers_of_a_batch_name_its_source():
    batch = Batch(8, source=2)
    messages, numbers, _ = batch.arrays
    renumber(numbers)
    assert messages.view(np.int64)[:2].tolist() == [
        2 * SOURCE + batch.count, 2 * SOURCE + batch.count + 1,
    ]  # fmt: skip


def test_a_message_without_room_for_its_number_is_refused():
    assert Batch(8).count > 1
    with pytest.raises(ValueError, match="at least 8"):
        Batch(7)
