"""When a gap of an unreliable stream is filled, also compared with a naive implementation."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.gap_fill import SLOT, GapFill
from windtunnel.driver.logbuffer import gap_filler
from windtunnel.driver.media_driver.image import (
    gap_evidence,
    gap_rows,
    loss_detector,
    open_gaps,
    publication_image,
)
from windtunnel.driver.media_driver.receiver import gap_filling

TERM, BITS, INITIAL = 65_536, 16, -2
MS = 1_000_000
DELAY = 20 * MS


class Image:
    """An image of an unreliable stream. `turn` is a turn of the conductor and of the receiver."""

    def __init__(self, datagrams, delay=DELAY):
        self.record = publication_image.make_images(1)[0][0]
        self.record.term_length, self.record.bits, self.record.initial_term_id = TERM, BITS, INITIAL
        self.record.is_fill_delayed = 1
        self.record.fill_datagrams, self.record.fill_delay_ns = datagrams, delay
        self.gaps = gap_rows.make_gaps(1)[0]
        self.filled = gap_filling.make_filled_gaps(1)[0]
        self.log = np.zeros(3 * TERM + 4096, np.uint8)
        self.hwm, self.rebuild, self.fills, self.early = 0, 0, 0, 0

    def arrive(self, begin, end):
        if end > self.hwm:
            self.record.datagram_count += 1
            self.hwm = end
        elif gap_filling.take_early(self.filled, self.fills, begin):
            self.early += 1
        if self.log[begin : begin + 4].any():
            return
        for at in range(begin, end, SLOT):
            struct.pack_into("<iBBH", self.log, at, SLOT, 0, 0xC0, 1)

    def turn(self, now):
        """Returns the ranges that were filled."""
        found = open_gaps.scan(self.record, self.gaps, self.log, self.rebuild, self.hwm, now)
        self.rebuild = max(self.rebuild, int(found[0]))
        row, filled = 0, []
        while row := gap_evidence.take_due(self.record, self.gaps, self.log, row, now):
            begin, length = int(self.record.gap_offset), int(self.record.gap_length)
            assert gap_filler.try_fill(
                self.log, 0, 3 * TERM, self.record.gap_term_id, begin, length
            )
            self.fills = int(gap_filling.remember(self.filled, self.fills, begin, begin + length))
            filled.append((begin, begin + length))
        return filled

    @property
    def pads(self):
        """The slots that are padding."""
        found, at = set(), 0
        while at < self.hwm:
            length, _, _, kind = struct.unpack_from("<iBBH", self.log, at)
            if length > 0 and kind == 0:
                found |= set(range(at, at + length, SLOT))
            at += max(length, SLOT)
        return found


def slots(*numbers):
    """Return the range of each slot."""
    return [(SLOT * number, SLOT * (number + 1)) for number in numbers]


def fed(image, *numbers, now=0):
    """Receive one datagram per slot and duty cycle. Returns the filled ranges."""
    found = []
    for begin, end in slots(*numbers):
        image.arrive(begin, end)
        found += image.turn(now)
    return found


def test_a_gap_is_filled_after_a_number_of_later_datagrams():
    image = Image(4)
    assert fed(image, 0, 2, 3, 4) == []
    assert fed(image, 5) == slots(1)


def test_a_datagram_that_was_overtaken_by_fewer_is_not_replaced():
    image = Image(4)
    assert fed(image, 0, 2, 3, 4, 1, 5, 6, 7, 8) == []
    image.turn(0)
    assert (image.record.gap_count, image.rebuild, image.early) == (0, 9 * SLOT, 0)


def test_a_number_of_one_fills_a_gap_at_the_datagram_that_reveals_it():
    assert fed(Image(1), 0, 2) == slots(1)


def test_each_gap_waits_for_its_own_evidence():
    image = Image(3)
    assert fed(image, 1, 3, 4) == slots(0)
    assert fed(image, 5) == slots(2)


def test_a_gap_is_filled_after_the_delay_if_nothing_else_arrives():
    image = Image(100)
    assert fed(image, 1) == []
    assert image.turn(DELAY - 1) == []
    assert image.turn(DELAY) == slots(0)


def test_without_a_number_a_gap_is_filled_only_after_the_delay():
    image = Image(0)
    assert fed(image, *range(1, 200)) == []
    assert image.turn(DELAY) == slots(0)


def test_duplicates_and_late_datagrams_are_no_evidence():
    image = Image(3)
    assert fed(image, 0, 2, 4, 4, 4, 3, 2, 0) == []
    assert fed(image, 5) == slots(1)


def test_only_the_missing_parts_of_a_gap_are_filled():
    image = Image(0)
    assert fed(image, 9, 3, 4) == []
    assert image.turn(DELAY) == [(0, 3 * SLOT), (5 * SLOT, 9 * SLOT)]


def test_an_adjacent_gap_that_was_found_later_has_its_own_delay():
    image = Image(0)
    image.hwm = SLOT  # by a heartbeat
    assert image.turn(0) == []
    assert fed(image, 2, now=5 * MS) == []
    assert image.turn(DELAY) == slots(0)
    assert image.turn(DELAY + 5 * MS) == slots(1)


def test_a_gap_filled_too_early_is_counted_once():
    image = Image(1)
    assert fed(image, 4) == [(0, 4 * SLOT)]
    fed(image, 1, 0, 1, 2)
    assert image.early == 1
    fed(image, 6)
    fed(image, 5)
    assert image.early == 2


def test_only_the_last_filled_gaps_are_remembered():
    image = Image(1)
    fed(image, *range(1, 2 * gap_filling.FILLED_MAX + 2, 2))
    assert image.fills == gap_filling.FILLED_MAX + 1
    fed(image, 0)
    assert image.early == 0
    fed(image, 2)
    assert image.early == 1


def test_a_filled_gap_is_counted_as_a_loss_once():
    image = Image(1)
    fed(image, 0, 2)
    assert loss_detector.count_new_loss(image.record) == SLOT
    image.record.gap_naks = 2
    assert loss_detector.count_new_loss(image.record) == 0


STEPS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.booleans()),
    max_size=60,
)
"""The number of a datagram, a pause before it, and whether a duty cycle follows."""


def bounds(number):
    """Return the range of a datagram: one, two or three slots, in turn."""
    rest = number % 3
    begin = 6 * (number // 3) + (0, 1, 3)[rest]
    return SLOT * begin, SLOT * (begin + rest + 1)


@given(STEPS, st.sampled_from([0, 1, 2, 3, 8]))
def test_agrees_with_its_naive_twin(steps, datagrams):
    image, twin, now = Image(datagrams), GapFill(datagrams, DELAY), 0
    for number, pause, has_turn in steps:
        now += pause * MS
        image.arrive(*bounds(number))
        twin.arrive(*bounds(number))
        if has_turn:
            image.turn(now)
            twin.turn(now)
            assert image.pads == twin.pads
            assert image.early == twin.early
    open_gaps.scan(image.record, image.gaps, image.log, image.rebuild, image.hwm, now)
    twin_slots = set(range(0, image.hwm, SLOT)) - twin.data - twin.pads
    row_slots = {
        at
        for gap in image.gaps[: image.record.gap_count]
        for at in range(int(gap.begin), int(gap.end), SLOT)
    }
    assert twin_slots <= row_slots


@given(STEPS, st.sampled_from([1, 2, 3, 8]))
def test_any_order_of_arrivals_is_complete_after_one_delay(steps, datagrams):
    image, now = Image(datagrams), 0
    for number, pause, has_turn in steps:
        now += pause * MS
        image.arrive(*bounds(number))
        if has_turn:
            image.turn(now)
    image.turn(now)
    for _ in range(2):
        now += DELAY
        image.turn(now)
    image.turn(now)
    assert (image.record.gap_count, image.rebuild) == (0, image.hwm)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("by", [1, 2, 3])
@given(st.sets(st.integers(1, 30), max_size=6), st.sets(st.integers(1, 30), max_size=3))
def test_only_lost_datagrams_are_replaced_if_none_is_overtaken_by_as_many(by, overtaken, lost):
    order = sorted(
        (number + (by + 0.5 if number in overtaken else 0), number)
        for number in range(34)
        if number not in lost
    )
    image = Image(by + 1)
    found = fed(image, *(number for _, number in order))
    found += image.turn(DELAY)
    expected = {SLOT * number for number in lost}
    assert image.pads == expected
    assert len(found) <= len(lost)
    assert image.early == 0
