"""Numbered messages: created in batches, checked in blocks."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import sequence as naive
from tests.unit.harness.workload.numbered_frames import DATA, PAD, frame
from windtunnel.harness.artifact.run.bench_board import Fault
from windtunnel.harness.workload.bench.bench_sequence import (
    Batch,
    check_block,
    content_of,
    renumber,
)

WORDS = {
    "ok": Fault.NONE,
    "sequence": Fault.SEQUENCE,
    "length": Fault.LENGTH,
    "broken frame": Fault.BROKEN_FRAME,
    "content": Fault.CONTENT,
}


SOURCE = 1 << 40


def check(block: bytes, expected: int, message_length: int) -> tuple[int, int, int]:
    """Check a block of the only source. Returns its next number, the fault, and the wrong value."""
    due = np.array([expected])
    content = content_of(message_length)
    words = np.frombuffer(block, np.int64)
    fault, wanted, found = check_block(words, due, message_length, content)
    assert fault != Fault.SEQUENCE or wanted == due[0]
    return int(due[0]), int(fault), int(found)


def rows_of(length: int) -> list[bytes]:
    """Return the bytes of each message of a batch; the first eight contain its number."""
    return [row.tobytes()[:length] for row in content_of(length)]


def message(number: int, length: int) -> bytes:
    """Return one frame with a message of a batch."""
    rows = rows_of(length)
    return frame(number, length, content=rows[number % len(rows)])


def test_counts_messages_in_order_and_skips_padding():
    block = frame(5) + frame(6) + frame(0, 100, PAD) + frame(7)
    assert check(block, 5, 8) == (8, Fault.NONE, 0)


def test_each_source_has_its_own_numbers():
    block = frame(5) + frame(SOURCE + 1) + frame(6) + frame(SOURCE + 2)
    due, content = np.array([5, 1]), content_of(8)
    assert check_block(np.frombuffer(block, np.int64), due, 8, content) == (Fault.NONE, 0, 0)
    assert due.tolist() == [7, 3]
    again = np.frombuffer(frame(SOURCE + 2), np.int64)
    assert check_block(again, due, 8, content) == (Fault.SEQUENCE, 3, 2)
    unknown = np.frombuffer(frame(2 * SOURCE + 7), np.int64)
    found = check_block(unknown, due, 8, content)
    assert found == (Fault.SEQUENCE, 7, 2 * SOURCE + 7)


@pytest.mark.parametrize(
    ("numbers", "found"), [((5, 7), 7), ((5, 5), 5), ((5, 4), 4), ((5, -1), -1)], ids=str
)
def test_returns_the_number_of_a_wrong_message(numbers, found):
    block = b"".join(frame(each) for each in numbers)
    assert check(block, 5, 8) == (6, Fault.SEQUENCE, found)


@pytest.mark.parametrize("length", [0, 7, 9, 4_000])
def test_rejects_a_message_of_another_length(length):
    assert check(frame(5) + frame(6, length), 5, 8) == (6, Fault.LENGTH, length)


def test_rejects_a_frame_that_exceeds_its_block():
    assert check(frame(5, 100)[:96], 5, 100) == (5, Fault.LENGTH, 100)


@pytest.mark.parametrize("length", [0, 31, -40])
def test_rejects_an_invalid_frame(length):
    block = struct.pack("<i28x", length)
    assert check(block, 5, 8) == (5, Fault.BROKEN_FRAME, length & 0xFFFFFFFF)


def test_finds_nothing_wrong_with_an_empty_block():
    assert check(b"", 5, 8) == (5, Fault.NONE, 0)


LENGTHS = (8, 9, 12, 16, 23, 40, 1344)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_batch_is_what_a_reader_expects(length):
    batch = Batch(length)
    messages, numbers, _ = batch.arrays
    for first in (0, batch.count):
        block = b"".join(
            frame(first + index, length, content=row.tobytes())
            for index, row in enumerate(messages.reshape(batch.count, length))
        )
        assert check(block, first, length) == (first + batch.count, Fault.NONE, 0)
        renumber(numbers)


@pytest.mark.parametrize("length", LENGTHS)
def test_each_byte_of_a_message_counts(length):
    first, second = message(0, length), message(1, length)
    for at in range(40, 32 + length):
        damaged = bytearray(second)
        damaged[at] ^= 0x10
        assert check(first + bytes(damaged), 0, length) == (1, Fault.CONTENT, 0), at
    # What follows the message in its frame is not part of it.
    for at in range(32 + length, len(second)):
        harmless = bytearray(second)
        harmless[at] ^= 0x10
        assert check(first + bytes(harmless), 0, length) == (2, Fault.NONE, 0), at


def test_the_content_of_another_message_is_refused():
    rows = rows_of(32)
    block = frame(0, 32, content=rows[0]) + frame(1, 32, content=rows[2])
    assert check(block, 0, 32) == (1, Fault.CONTENT, 0)


@pytest.mark.parametrize("length", [*LENGTHS, 65_536, 100_000])
def test_the_rows_of_a_content_are_different_and_a_power_of_two(length):
    content = content_of(length)
    count = len(content)
    assert count & (count - 1) == 0
    assert count * length <= max(1 << 16, length)
    assert len(set(rows_of(length))) == count


FRAMES = st.builds(
    lambda source, number, length, kind, is_right: frame(
        source * SOURCE + number,
        length,
        kind,
        rows_of(length)[number] if is_right else b"",
    ),
    st.integers(-1, 2),
    st.integers(0, 2),
    st.sampled_from([8, 9, 9, 40, 40]),
    st.sampled_from([DATA, DATA, PAD]),
    st.sampled_from([True, True, True, False]),
)


@given(st.lists(FRAMES, max_size=6), st.data())
def test_agrees_with_the_reference(frames, data):
    block = bytearray(b"".join(frames))
    if block and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(block) - 1))
        block[at] = data.draw(st.integers(0, 255))
    length = data.draw(st.sampled_from([8, 9, 40]))
    word, wanted, found, due = naive.check_block(
        bytes(block), {0: 0, 1: 0}, length, rows_of(length)
    )
    numbers = np.zeros(2, np.int64)
    checked = check_block(np.frombuffer(block, np.int64), numbers, length, content_of(length))
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
