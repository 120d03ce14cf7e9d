"""The keyed draw: published values, the reference implementation, and uniformity of each input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.fault_rules import draw as naive_draw
from windtunnel.harness.middlebox.engine.prf import DRAW_BITS, draw, philox, subject

FULL = 0xFFFFFFFF
WORD = st.integers(0, FULL)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_returns_the_published_values(counter, key, expected):
    assert philox(*counter, *key) == expected


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 255),
    st.integers(0, 1),
    st.integers(0, 11),
    st.integers(0, 255),
    st.integers(0, 1),
    st.integers(0, 2**61),
    WORD,
)
def test_agrees_with_the_reference(seed, rule, link, index, ordinal, by_order, place, attempt):
    drawn = draw(seed, rule, subject(link, index, ordinal, by_order), place, attempt)
    assert drawn == naive_draw(seed, rule, link, index, ordinal, by_order, place, attempt)[0]
    assert 0 <= drawn < 2**DRAW_BITS


VARIED = {
    "seed": lambda n: draw(n, 0, 0, 64, 1),
    "rule": lambda n: draw(n // 256, n % 256, 0, 64, 1),
    "position": lambda n: draw(7, 0, 0, 32 * n, 1),
    "attempt": lambda n: draw(7, 0, 0, 64, n),
    "position above 32 bits": lambda n: draw(7, 0, 0, n << 32, 1),
    "stream": lambda n: draw(n // 256, 0, subject(0, 1, n % 256, 0), 0, 1),
}


@pytest.mark.parametrize("what", VARIED)
def test_draws_are_uniform_in_each_part_of_the_key(what):
    count, bins = 16_000, 16
    filled = [0] * bins
    neighbours_equal = 0
    before = None
    for number in range(count):
        drawn = VARIED[what](number)
        filled[drawn >> (DRAW_BITS - 4)] += 1
        neighbours_equal += before == drawn >> (DRAW_BITS - 4)
        before = drawn >> (DRAW_BITS - 4)
    chi_square = sum((each - count / bins) ** 2 / (count / bins) for each in filled)
    assert chi_square < 45, f"{what}: {filled}"  # 15 degrees of freedom, one in 10 000
    assert abs(neighbours_equal - count / bins) < 130, what  # four standard deviations


def test_each_part_of_the_key_matters():
    base = (1, 2, subject(0, 1, 3, 0), 4, 5)
    changed = [
        (2, *base[1:]),
        (1 + (1 << 40), *base[1:]),
        (1, 3, *base[2:]),
        (*base[:2], subject(1, 1, 3, 0), *base[3:]),
        (*base[:2], subject(0, 2, 3, 0), *base[3:]),
        (*base[:2], subject(0, 1, 4, 0), *base[3:]),
        (*base[:2], subject(0, 1, 3, 1), *base[3:]),
        (*base[:3], 4 + (1 << 40), 5),
        (*base[:4], 6),
    ]
    assert len({draw(*key) for key in [base, *changed]}) == len(changed) + 1
