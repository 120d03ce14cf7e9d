"""Corruption by the link is allowed exactly to the bit; any other difference is a violation."""

import numpy as np
import pytest

from windtunnel.harness.simulator.audit.stream_audit import FREE_BITS
from windtunnel.harness.simulator.audit.stream_traffic import _is_flipped, differs

LENGTH, AT = 160, 64


def logs(*bits):
    published = np.arange(512, dtype=np.uint8)
    log = published.copy()
    for bit in bits:
        log[AT + bit // 8] ^= np.uint8(1 << bit % 8)
    return log, published


def is_recognised(bits, *flipped):
    log, published = logs(*flipped)
    assert differs(log, AT, published, AT, LENGTH)
    return _is_flipped(log, AT, published, LENGTH, bits)


def test_bits_that_were_flipped_are_excused():
    assert is_recognised(1, FREE_BITS)
    assert is_recognised(3, 700, 702)
    assert is_recognised(2, 8 * LENGTH - 2, 8 * LENGTH - 1)


@pytest.mark.parametrize(
    ("bits", "flipped"),
    [
        (0, (FREE_BITS,)),  # a frame that the link never damaged
        (1, (FREE_BITS - 1,)),  # in the term id
        (1, (700, 701)),  # more than was flipped
        (3, (700, 703)),  # wider than was flipped
        (3, (700, 1_000)),  # in two places
    ],
)
def test_any_other_difference_is_not_excused(bits, flipped):
    assert not is_recognised(bits, *flipped)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 33])
def test_differs_finds_one_bit_anywhere_and_nothing_outside(length):
    left = np.arange(64, dtype=np.uint8)
    for flipped in range(64):
        right = left.copy()
        right[flipped] ^= 1
        assert differs(left, 3, right, 3, length) == (3 <= flipped < 3 + length)
