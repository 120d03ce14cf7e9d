"""Comparison kernels against their reference implementations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import compare as naive
from windtunnel.harness.verdict.core.compare import (
    first_difference,
    first_differing_pair,
    first_wrong_message,
)


def array(data):
    return np.frombuffer(bytes(data), dtype=np.uint8)


@st.composite
def deliveries(draw):
    payload = draw(st.binary(min_size=1, max_size=20))
    lengths = draw(st.lists(st.integers(0, 50), max_size=8))
    starts = [draw(st.integers(0, 100)) for _ in lengths]
    parts = [
        bytes(payload[(start + at) % len(payload)] for at in range(length))
        for start, length in zip(starts, lengths, strict=True)
    ]
    messages = bytearray(b"".join(parts))
    for at in draw(st.lists(st.integers(0, max(len(messages) - 1, 0)), max_size=2)):
        if messages:
            messages[at] ^= draw(st.integers(0, 255))
    return bytes(messages), payload, lengths, starts


@given(deliveries())
def test_the_first_wrong_message_is_that_of_the_reference_implementation(case):
    messages, payload, lengths, starts = case
    found = first_wrong_message(
        array(messages), array(payload), np.array(lengths, np.int64), np.array(starts, np.int64)
    )
    assert tuple(found) == naive.first_wrong_message(messages, payload, lengths, starts)


def test_the_payload_repeats():
    assert first_difference(array(b"cabcabca"), 0, array(b"abc"), 302, 8) == -1
    assert first_difference(array(b"cabcabXa"), 0, array(b"abc"), 302, 8) == 6


def test_pairs_are_compared_in_order():
    buf = array(b"abcdabcXabcd")
    again = np.array([8, 4, 8], np.int64)
    first = np.zeros(3, np.int64)
    for right in (buf, buf.copy()):
        for lengths, found in (([4, 4, 4], (1, 3)), ([4, 3, 4], (-1, -1))):
            sized = np.array(lengths, np.int64)
            assert tuple(first_differing_pair(buf, first, right, again, sized)) == found
