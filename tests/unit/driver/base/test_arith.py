"""Arithmetic has the same results in kernels and in plain Python."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base import arith


@given(st.integers(-(1 << 40), 1 << 40))
def test_wrapping_is_what_32_bits_do(value: int) -> None:
    assert arith.wrap_i32(value) == struct.unpack("<i", struct.pack("<I", value % (1 << 32)))[0]


@given(st.integers(0, 1 << 40), st.integers(0, 20))
def test_aligning_gives_the_next_multiple(value: int, bits: int) -> None:
    assert arith.align(value, 1 << bits) == -(-value // (1 << bits)) * (1 << bits)


@given(st.integers(-5, 5000))
def test_powers_of_two(value: int) -> None:
    assert bool(arith.is_power_of_two(value)) == (value in {1 << bit for bit in range(13)})


@pytest.mark.parametrize("bits", [0, 1, 5, 16, 30, 40])
def test_the_exponent_of_a_power(bits: int) -> None:
    assert arith.bits_to_shift(1 << bits) == bits
