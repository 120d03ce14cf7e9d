"""Comparison of a segment file with expected frames: the kernel agrees with its reference."""

import random

import numpy as np
import pytest

from tests.naive import recorded_log as naive
from windtunnel.harness.dissect.archive_files.recorded_log import IDENTITY_LENGTH, first_wrong_frame
from windtunnel.harness.dissect.driver_files.expected_log import expected_log

TERM, MTU = 65_536, 1_408
IDENTITY = (-7, 1_001, 2**31 - 1, TERM)
PAYLOAD = bytes(range(1, 252))
LOG = expected_log(np.array([1, 0, 33, 5_000, 40_000, 30_000, 8_000], dtype=np.int64), MTU, TERM)
ROWS = LOG.frames
assert (ROWS["frame_type"] == 0).any()


def file_of(base, rows):
    content = bytearray(2 * TERM)
    for row in rows:
        frame = naive.frame_of(row, PAYLOAD, IDENTITY)
        at = int(row["position"]) - base
        content[at : at + len(frame)] = frame
    return content


def look(content, rows=ROWS, base=0, payload=PAYLOAD):
    """Return the result of the kernel, which must be that of its reference implementation."""
    identity = np.array(IDENTITY, dtype=np.int64)
    assert len(identity) == IDENTITY_LENGTH
    buf, source = (np.frombuffer(bytes(each), dtype=np.uint8) for each in (content, payload))
    found = tuple(int(each) for each in first_wrong_frame(buf, base, rows, source, identity))
    assert found == naive.first_wrong_frame(bytes(content), base, rows, payload, IDENTITY)
    return found


def test_a_correct_file_has_no_wrong_frame():
    assert look(file_of(0, ROWS)) == (-1, -1)
    assert look(b"", ROWS[:0]) == (-1, -1)


def test_a_file_may_begin_in_the_middle_of_the_stream():
    rows = ROWS[ROWS["position"] >= TERM]
    assert look(file_of(TERM, rows), rows, TERM) == (-1, -1)


def test_a_file_that_ends_within_a_frame_is_wrong_where_it_ends():
    content = file_of(0, ROWS)
    position = int(ROWS["position"][3])
    assert look(content[: position + 40]) == (3, 40)
    assert look(content[:position]) == (3, 0)
    assert look(b"") == (0, 0)


@pytest.mark.parametrize("byte", range(33))
def test_each_byte_of_a_header_counts(byte):
    content = file_of(0, ROWS)
    content[int(ROWS["position"][2]) + byte] ^= 1
    index, found = look(content)
    assert index == 2
    assert found <= byte


def test_damaged_bytes_are_found_where_the_reference_finds_them():
    chance = random.Random(20)
    sound = file_of(0, ROWS)
    for _ in range(60):
        content = bytearray(sound)
        content[chance.randrange(LOG.end_position)] ^= 1 << chance.randrange(8)
        look(content)
    assert look(sound, payload=PAYLOAD[:-1])[0] >= 0
