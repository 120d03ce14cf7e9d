"""Consumed ranges are zeroed, at most one term per call, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.media_driver.conductor import term_cleaning
from windtunnel.driver.media_driver.conductor.publications.publication_limit import make_limits

TERM, BITS = 65_536, 16
LOG_LENGTH = 3 * TERM + 4096


def make_owner(log, clean_position):
    rec = make_limits(1)[0]
    rec.log_address, rec.log_length = address_of(log), log.size
    rec.term_length, rec.bits, rec.clean_position = TERM, BITS, clean_position
    return rec


@given(st.integers(0, 7 * TERM // 32), st.lists(st.integers(-64, 2 * TERM // 32), max_size=12))
def test_zeroes_from_the_clean_position_towards_the_limit(begin, steps):
    log = np.full(LOG_LENGTH, 0xAA, np.uint8)
    expected, clean = log.copy(), 32 * begin
    owner = make_owner(log, clean)
    for step in steps:
        limit = clean + 32 * step
        end = min(limit, (clean // TERM + 1) * TERM)
        if end > clean:
            at = clean % (3 * TERM)
            expected[at : at + end - clean] = 0
            clean = end
        term_cleaning.clean_to(owner, limit)
        assert owner.clean_position == clean
    assert np.array_equal(log, expected)


@pytest.mark.parametrize("beyond", [1, 5, 8, 31])
@pytest.mark.parametrize("at", [0, TERM - 32])
def test_a_limit_inside_a_slot_does_not_change_that_slot(at, beyond):
    """A limit comes from what clients write into their counters, so it may be anything."""
    log = np.full(LOG_LENGTH, 0xAA, np.uint8)
    owner = make_owner(log, at)
    term_cleaning.clean_to(owner, at + beyond)
    assert owner.clean_position == at
    assert log.all()


@pytest.mark.parametrize("limit", [-(2**62), -1, 2**62, 2**62 + 7])
def test_no_limit_reaches_beyond_the_term(limit):
    log = np.full(LOG_LENGTH, 0xAA, np.uint8)
    owner = make_owner(log, TERM)
    term_cleaning.clean_to(owner, limit)
    assert log[:TERM].all()
    assert log[2 * TERM :].all()
