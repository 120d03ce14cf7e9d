"""Retransmit ranges compared with sets of units, and at their bounds."""

from hypothesis import given
from hypothesis import strategies as st

from tests.naive.retransmit_ranges import UNIT
from tests.naive.retransmit_ranges import RetransmitRanges as Twin
from windtunnel.driver.media_driver.sender import retransmit_ranges
from windtunnel.driver.media_driver.sender.retransmit_ranges import RANGES_MAX

ROW, LINGER = 1, 10
FIRST = ROW * RANGES_MAX


class Ranges:
    """The kernel's ranges of one stream, called as the sender calls them."""

    def __init__(self):
        self.ranges = retransmit_ranges.make_ranges(3)
        self.count = 0

    @property
    def used(self):
        return self.ranges[FIRST : FIRST + self.count]

    def request(self, begin, end, due):
        self.count, contained, is_full = retransmit_ranges.add(
            self.ranges, ROW, self.count, begin, end, due
        )
        return contained, is_full

    def send(self, now, most):
        sent = []
        for index in range(FIRST, FIRST + self.count):
            rec = self.ranges[index]
            if retransmit_ranges.is_due(rec, now) and len(sent) < most:
                end = min(int(rec.end), int(rec.sent) + UNIT * (most - len(sent)))
                sent += range(int(rec.sent) // UNIT, end // UNIT)
                retransmit_ranges.on_sent(rec, end, LINGER, now)
        return sent

    def time_passes(self, now, lowest):
        self.count = retransmit_ranges.remove_finished(self.ranges, ROW, self.count, lowest, now)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(0, 40),
        st.integers(1, 20),
        st.sampled_from([0, 4]),
        st.integers(0, 12),
        st.integers(0, 8),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_agrees_with_its_naive_twin(steps):
    ranges, twin, now, lowest = Ranges(), Twin(RANGES_MAX), 100, 0
    for pause, first, count, delay, most, rise in steps:
        now, lowest = now + pause, lowest + rise
        ranges.time_passes(now, lowest)
        twin.time_passes(now, lowest)
        begin, end = UNIT * first, UNIT * (first + count)
        assert ranges.request(begin, end, now + delay) == twin.request(begin, end, now + delay)
        assert ranges.send(now, most) == twin.send(now, LINGER, most)
        assert [(int(rec.begin), int(rec.end), int(rec.sent)) for rec in ranges.used] == [
            (
                part.units[0] * UNIT,
                (part.units[-1] + 1) * UNIT,
                (part.units[-1] + 1 - len(part.waiting)) * UNIT,
            )
            for part in twin.parts
        ]
    assert not ranges.ranges[:FIRST].end.any()
    assert not ranges.ranges[FIRST + RANGES_MAX :].end.any()


@given(steps=STEPS)
def test_a_requested_range_is_sent_at_once_unless_sent_within_its_linger(steps):
    ranges, now, sent_at = Ranges(), 100, {}
    for pause, first, count, _, _, _ in steps:
        now += pause
        ranges.time_passes(now, 0)
        ranges.request(UNIT * first, UNIT * (first + count), now)
        requested = range(first, first + count)
        expected = [unit for unit in requested if now - sent_at.get(unit, -LINGER) >= LINGER]
        assert ranges.send(now, 1000) == expected
        sent_at |= dict.fromkeys(expected, now)


@given(steps=STEPS)
def test_every_requested_unit_is_sent_even_with_a_small_share_per_cycle(steps):
    ranges, now, requested, sent_at = Ranges(), 100, set(), {}
    for pause, first, count, _, most, _ in (*steps, *[(1, 0, 0, 0, 8, 0)] * 20):
        now += pause
        ranges.time_passes(now, 0)
        if count:
            ranges.request(UNIT * first, UNIT * (first + count), now)
        requested |= set(range(first, first + count))
        for unit in ranges.send(now, most):
            assert unit in requested
            assert now - sent_at.get(unit, -LINGER) >= LINGER
            sent_at[unit] = now
    assert sorted(requested) == sorted(sent_at)


def test_a_full_row_rejects_ranges_and_keeps_those_that_it_has():
    ranges = Ranges()
    for number in range(RANGES_MAX):
        assert ranges.request(64 * number, 64 * number + 32, 0) == (0, False)
    assert ranges.request(0, 64, 0) == (32, True)
    assert ranges.request(32, 64, 0) == (0, True)
    assert ranges.request(0, 32, 0) == (32, False)
    assert ranges.count == RANGES_MAX
    assert len(ranges.send(0, 2 * RANGES_MAX)) == RANGES_MAX
    ranges.time_passes(LINGER, 0)
    assert ranges.count == 0
    assert not ranges.ranges[FIRST + RANGES_MAX :].end.any()


def test_one_range_across_all_free_parts_of_a_full_row_is_bounded():
    ranges = Ranges()
    for number in range(RANGES_MAX - 1):
        ranges.request(64 * number, 64 * number + 32, 0)
    assert ranges.request(0, 64 * RANGES_MAX, 0) == (64, True)
    assert ranges.count == RANGES_MAX
