"""Positions and term ids, across the wrap of term ids."""

import pytest

from windtunnel.driver.base.arith import I32_MAX, I32_MIN
from windtunnel.driver.logbuffer import position

BITS = 16
TERM_LENGTH = 1 << BITS


@pytest.mark.parametrize(
    ("initial", "term_id", "offset", "expected"),
    [
        (7, 7, 0, 0),
        (7, 8, 64, TERM_LENGTH + 64),
        (-3, 2, 32, 5 * TERM_LENGTH + 32),
        (I32_MAX, I32_MIN, 0, TERM_LENGTH),
        (I32_MAX - 1, I32_MIN + 1, 96, 3 * TERM_LENGTH + 96),
        (0, I32_MAX, TERM_LENGTH - 32, (I32_MAX << BITS) + TERM_LENGTH - 32),
    ],
)
def test_position_of_term_and_offset(
    initial: int, term_id: int, offset: int, expected: int
) -> None:
    assert position.of(term_id, offset, BITS, initial) == expected
    assert position.term_id(expected, BITS, initial) == term_id
    assert position.term_offset(expected, TERM_LENGTH) == offset
    assert position.index(expected, BITS) == (expected // TERM_LENGTH) % 3
    assert position.index_of_count(expected // TERM_LENGTH) == position.index(expected, BITS)


def test_a_term_id_before_the_initial_one_has_a_negative_position() -> None:
    assert position.of(6, 0, BITS, 7) == -TERM_LENGTH


def test_limits() -> None:
    assert position.max_possible(TERM_LENGTH) == TERM_LENGTH * 2**31
    assert position.max_message_length(TERM_LENGTH) == 8192
    assert position.max_message_length(128 * 1024 * 1024) == 16 * 1024 * 1024
    assert position.max_message_length(1024 * 1024 * 1024) == 16 * 1024 * 1024
