"""The walk over two logs agrees with its reference, on valid logs and on damaged ones."""

import struct

import numpy as np
import pytest

from tests.naive import log_walk as naive
from windtunnel.harness.dissect.driver_files import log_walk

LENGTHS = (32, 33, 96, 64, 1408, 40, 32)


def frames(lengths=LENGTHS, pad: int = 256) -> bytes:
    """Return consecutive DATA frames, and a PAD at the end."""
    parts, at = [], 0
    for number, length in enumerate(lengths):
        header = struct.pack("<iBBHiiiiq", length, 0, 0xC0, 1, at, 7, 8, 9, number)
        body = bytes((number + index) % 251 + 1 for index in range(length - 32))
        parts.append(header + body + bytes(-length % 32))
        at += len(parts[-1])
    parts.append(struct.pack("<iBBHiiiiq", pad, 0, 0xC0, 0, at, 7, 8, 9, 0) + bytes(pad - 32))
    return b"".join(parts)


def filled(log: bytes, start: int, end: int) -> bytes:
    """Return the log with a filled gap."""
    header = struct.pack("<iBBHiiiiq", end - start, 0, 0xC0, 0, start, 7, 8, 9, 0)
    return log[:start] + header + bytes(end - start - 32) + log[end:]


def walk(publication: bytes, image: bytes, start: int = 0):
    """Return the result of the kernel, which must be that of its reference implementation."""
    fills = np.zeros((4, 2), dtype=np.int64)
    result = np.zeros(log_walk.RESULT_LENGTH, dtype=np.int64)
    left, right = (np.frombuffer(each, dtype=np.uint8) for each in (publication, image))
    log_walk.compare_logs(left, right, start, len(left), fills, result)
    status, at, byte, count, filled_count = (int(each) for each in result)
    found = status, at, byte, count, [tuple(each) for each in fills[:filled_count].tolist()]
    assert found == naive.compare_logs(publication, image, start, len(publication))
    return found


def test_equal_logs_are_identical():
    log = frames()
    assert walk(log, log) == (log_walk.IDENTICAL, len(log), 0, len(LENGTHS) + 1, [])


def test_a_walk_may_begin_at_any_frame():
    log = frames()
    assert walk(log, log, 32) == (log_walk.IDENTICAL, len(log), 0, len(LENGTHS), [])


@pytest.mark.parametrize("byte", [0, 5, 6, 24, 32, 63])
def test_one_different_byte_is_found(byte):
    log = frames()
    at = 32 + 64
    damaged = bytearray(log)
    damaged[at + byte] ^= 0x20
    assert walk(log, bytes(damaged))[:4] == (log_walk.DIFFERENT, at, byte, 2)


def test_bytes_after_the_header_of_a_pad_and_in_the_alignment_are_ignored():
    log = frames()
    other = bytearray(log)
    other[-1] = other[32 + 63] = 1
    assert walk(log, bytes(other))[0] == log_walk.IDENTICAL


def test_a_filled_gap_over_whole_frames_is_returned():
    log = frames()
    assert walk(log, filled(log, 32, 32 + 64 + 96)) == (
        log_walk.IDENTICAL,
        len(log),
        0,
        len(LENGTHS) + 1,
        [(32, 192)],
    )


@pytest.mark.parametrize("end", [32 + 64 + 32, 32 + 32])
def test_a_gap_filled_over_a_part_of_a_frame_is_a_difference(end):
    log = frames()
    assert walk(log, filled(log, 32, end))[:2] == (log_walk.DIFFERENT, 32)


def test_a_fill_beyond_the_end_is_a_difference():
    log = frames()
    last = len(log) - 256
    damaged = bytearray(log)
    damaged[last : last + 4] = (288).to_bytes(4, "little")
    assert walk(log, bytes(damaged))[:2] == (log_walk.DIFFERENT, last)


@pytest.mark.parametrize("length", [0, -64])
def test_an_image_that_ends_early_is_reported(length):
    log = frames()
    short = bytearray(log)
    short[96:100] = length.to_bytes(4, "little", signed=True)
    assert walk(log, bytes(short))[:2] == (log_walk.IMAGE_ENDS, 96)


@pytest.mark.parametrize("length", [0, 31, -1, 1 << 20])
def test_a_missing_frame_of_the_publication_is_reported(length):
    log = frames()
    broken = bytearray(log)
    broken[96:100] = length.to_bytes(4, "little", signed=True)
    assert walk(bytes(broken), log)[:2] == (log_walk.PUBLICATION_ENDS, 96)
