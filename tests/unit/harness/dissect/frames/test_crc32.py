"""Checksums of one range and of two joined ranges equal those of zlib."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.dissect.frames.crc32 import combined_crc32, crc32


@given(st.binary(max_size=100), st.integers(0, 5))
def test_equals_zlibs_checksum(content, before):
    buf = np.frombuffer(bytes(before) + content + b"\xff", dtype=np.uint8)
    assert crc32(buf, before, len(content)) == zlib.crc32(content)


@given(st.binary(max_size=70), st.binary(max_size=70))
def test_checksums_of_two_ranges_are_joined_without_their_bytes(first, second):
    found = combined_crc32(zlib.crc32(first), zlib.crc32(second), len(second))
    assert found == zlib.crc32(first + second)


@pytest.mark.parametrize("length", [1 << 16, (1 << 24) + 7])
def test_a_checksum_is_joined_with_that_of_a_long_second_range(length):
    found = combined_crc32(zlib.crc32(b"abc"), zlib.crc32(bytes(length)), length)
    assert found == zlib.crc32(b"abc" + bytes(length))
