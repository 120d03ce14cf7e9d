"""All gaps, their NAK delays and retries, also compared with a naive implementation."""

import itertools
import struct
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.naive import open_gaps as naive
from windtunnel.driver.media_driver.image import (
    gap_rows,
    loss_detector,
    nak_schedule,
    open_gaps,
    publication_image,
)

TERM, BITS, INITIAL = 65_536, 16, -2
MS = 1_000_000
DELAY, RETRY = MS, 100 * MS
ROWS = 5
"""Rows of a test with few rows; GAPS_MAX would need long streams to be exhausted."""


class Image:
    """An image whose conductor tracks its open gaps."""

    def __init__(self, rows=gap_rows.GAPS_MAX):
        self.record = publication_image.make_images(1)[0][0]
        self.record.term_length, self.record.bits, self.record.initial_term_id = TERM, BITS, INITIAL
        self.record.nak_delay_ns, self.record.nak_retry_ns = DELAY, RETRY
        self.record.is_nak_all_gaps = 1
        self.gaps = gap_rows.make_gaps(1)[0][:rows]
        self.log = np.zeros(3 * TERM + 4096, np.uint8)

    def put(self, at, length=32):
        struct.pack_into("<iBBH", self.log, at % (3 * TERM), length, 0, 0xC0, 1)

    @property
    def term(self):
        """The bytes of the first term."""
        return bytearray(self.log[:TERM])

    def missing(self, end):
        """Return the ranges without a frame before an offset in the first term."""
        return naive.missing(self.term, 0, end)

    def receive(self, now):
        """Receive a packet of the stream."""
        nak_schedule.on_packet(self.record, self.gaps, now)

    def find(self, rebuild, hwm, now):
        """Return (offset reached, whether a gap is new)."""
        found = open_gaps.scan(self.record, self.gaps, self.log, rebuild, hwm, now)
        return int(found[0]), bool(found[1])

    def take(self, now):
        """Return the range of the oldest NAK that is due, or None."""
        if not nak_schedule.take_due(self.record, self.gaps, self.log, 0, now):
            return None
        begin = int(self.record.gap_offset)
        return begin, begin + int(self.record.gap_length)

    def scan(self, rebuild, hwm, now, may_send_nak=True):
        """Return (offset reached, whether a gap is new, range of the NAK or None)."""
        return (*self.find(rebuild, hwm, now), self.take(now) if may_send_nak else None)

    def naks(self, rebuild, hwm, times):
        """Return the time and the range of each NAK."""
        found = [(now, self.scan(rebuild, hwm, now)[2]) for now in times]
        return [(now, gap) for now, gap in found if gap is not None]


def test_every_gap_gets_a_nak_after_one_delay_oldest_first():
    image = Image()
    for at in (64, 128, 224):
        image.put(at)
    assert image.scan(0, 256, 0) == (0, True, None)
    naks = image.naks(0, 256, [DELAY - 1, *range(DELAY, DELAY + 6)])
    assert naks == [(DELAY, (0, 64)), (DELAY + 1, (96, 128)), (DELAY + 2, (160, 224))]


def test_no_nak_is_due_while_the_receiver_has_not_taken_the_last_range():
    image = Image()
    image.put(64)
    assert image.scan(0, 96, 0)[2] is None
    assert image.scan(0, 96, DELAY, may_send_nak=False)[2] is None
    assert image.scan(0, 96, DELAY)[2] == (0, 64)


def test_a_retry_waits_for_the_measured_repair_time_and_doubles():
    image = Image()
    image.put(32)
    image.put(96)
    naks = image.naks(0, 128, range(0, 3 * MS, MS))
    assert [gap for _, gap in naks] == [(0, 32), (64, 96)]
    image.put(0)
    assert image.scan(0, 128, 201 * MS)[0] == 64
    # 200 ms from NAK to repair: 200 + 4 * 100 ms. The NAK for the second gap was sent before that.
    assert (image.record.repair_ns, image.record.repair_deviation_ns) == (200 * MS, 100 * MS)
    times = [now for now, _ in image.naks(0, 128, range(201 * MS, 6_000 * MS, MS))]
    assert times[0] == 2 * MS + nak_schedule.INITIAL_REPAIR_NS
    assert [b - a for a, b in itertools.pairwise(times)] == [1_200 * MS, 2_400 * MS]


def retries_around_a_packet(packet):
    """Return the times of all NAKs for one gap of a stream that is silent but for one packet."""
    image = Image()
    image.receive(0)
    image.record.repair_ns = 160 * MS
    image.put(32)
    naks = image.naks(0, 64, range(0, packet, MS))
    image.receive(packet)
    return [now // MS for now, _ in naks + image.naks(0, 64, range(packet, 12_000 * MS, MS))]


@pytest.mark.full
def test_a_packet_after_a_silence_restarts_the_backoff():
    # The delay begins with 160 + 10 ms.
    doubled = [1, 171, 511, 1191, 2551, 5271, 10271]
    assert retries_around_a_packet(nak_schedule.SILENCE_NS - MS) == doubled
    # The NAKs were sent at 2551 ms and earlier; the next one is due 170 ms later, but not before.
    assert retries_around_a_packet(2_600 * MS) == [*doubled[:5], 2721, 2891, 3231, 3911, 5271, 7991]
    assert retries_around_a_packet(5_000 * MS) == [
        *doubled[:5], 5000, 5170, 5510, 6190, 7550, 10270,
    ]  # fmt: skip


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    ("repair_ms", "delays_ms"),
    [(2_000, [2_125, 4_250, 5_000, 5_000]), (6_400, [6_800, 6_800, 6_800])],
)
def test_a_doubled_delay_is_at_most_five_seconds_and_an_undoubled_one_is_kept(repair_ms, delays_ms):
    image = Image()
    image.record.repair_ns = repair_ms * MS
    image.put(32)
    times = [now // MS for now, _ in image.naks(0, 64, range(0, 22_000 * MS, MS))]
    assert [b - a for a, b in itertools.pairwise(times)][: len(delays_ms)] == delays_ms


def test_the_first_measurement_replaces_the_assumed_repair_time():
    image = Image()
    image.record.nak_retry_ns = 0
    for at in (32, 96, 320):
        image.put(at)
    times = [DELAY, DELAY + MS, DELAY + 2 * MS]
    naks = image.naks(0, 352, [0, *times])
    assert naks == list(zip(times, [(0, 32), (64, 96), (128, 320)], strict=True))
    image.put(0)
    image.put(128)  # A part of the third gap, whose delay begins again.
    arrival = DELAY + 10 * MS
    assert image.scan(0, 352, arrival) == (64, False, None)
    # 10 ms, then 8 ms for the part: a retry comes after 9.75 + 4 * 4.25 ms.
    assert (image.record.repair_ns, image.record.repair_deviation_ns) == (9.75 * MS, 4.25 * MS)
    naks = image.naks(0, 352, range(arrival, 350 * MS, MS))
    assert naks[:2] == [(times[1] + 27 * MS, (64, 96)), (arrival + 27 * MS, (160, 320))]


def test_the_first_measurement_does_not_undercut_the_configured_delay():
    image = Image()
    image.put(32)
    image.put(96)
    image.naks(0, 128, range(0, 3 * MS, MS))
    image.put(0)
    image.scan(0, 128, 12 * MS)
    times = [now for now, _ in image.naks(0, 128, range(12 * MS, 300 * MS, MS))]
    assert times[:1] == [2 * MS + RETRY]


def test_a_longer_first_measurement_moves_no_deadline():
    image = Image()
    image.put(32)
    image.put(96)
    image.naks(0, 128, range(0, 3 * MS, MS))
    image.put(0)
    image.scan(0, 128, 320 * MS)
    times = [now for now, _ in image.naks(0, 128, range(321 * MS, 600 * MS, MS))]
    assert times == [2 * MS + nak_schedule.INITIAL_REPAIR_NS]


def test_a_retry_never_comes_before_the_configured_delay():
    image = Image()
    image.record.nak_retry_ns = 5_000 * MS
    image.put(32)
    times = [now for now, _ in image.naks(0, 64, range(0, 9_000 * MS, MS))]
    assert times == [MS, 5_001 * MS]


def test_a_repair_after_a_second_nak_is_not_measured():
    image = Image()
    image.record.repair_ns, image.record.repair_deviation_ns = 10 * MS, MS
    image.put(32)
    naks = image.naks(0, 64, range(0, 150 * MS, MS))
    assert len(naks) == 2
    image.put(0)
    image.scan(0, 64, 150 * MS)
    assert (image.record.gap_count, image.record.repair_ns) == (0, 10 * MS)


def test_a_first_repair_after_a_pause_of_the_sender_does_not_delay_later_ones_by_minutes():
    image = Image()
    image.put(32)
    assert image.naks(0, 64, [0, MS]) == [(MS, (0, 32))]
    image.put(0)
    image.scan(0, 64, 60_000 * MS)
    assert (image.record.repair_ns, image.record.repair_deviation_ns) == (2_000 * MS, 1_000 * MS)


def test_a_retry_requests_only_the_missing_parts_of_a_gap():
    image = Image()
    image.put(320)
    assert image.naks(0, 352, [0, DELAY]) == [(DELAY, (0, 320))]
    image.put(64, 64)
    image.put(192)
    late = DELAY + nak_schedule.INITIAL_REPAIR_NS
    naks = image.naks(0, 352, range(late, late + 5))
    assert [gap for _, gap in naks] == [(0, 64), (128, 192), (224, 320)]


def test_a_gap_ends_with_its_term():
    image = Image()
    image.put(0, TERM - 64)
    image.put(TERM + 64)
    naks = image.naks(0, TERM + 96, range(0, 3 * DELAY, DELAY // 2))
    assert [gap for _, gap in naks] == [(TERM - 64, TERM), (0, 64)]
    assert image.record.gap_term_id == INITIAL + 1
    image.put(TERM - 64, 64)
    assert image.scan(0, TERM + 96, 3 * DELAY)[0] == TERM


def test_a_lost_byte_is_counted_only_at_its_first_nak():
    image = Image()
    image.put(64)
    image.put(128)
    image.scan(0, 160, 0)
    # A random delay, in a group, can put the later gap first.
    image.gaps[0].deadline_ns = 10 * MS
    counted = []
    for now in range(0, 1_000 * MS, MS):
        if image.scan(0, 160, now)[2]:
            counted.append(int(loss_detector.count_new_loss(image.record)))
    assert counted[:2] == [32, 64]
    assert len(counted) > 2
    assert not any(counted[2:])


def test_more_gaps_than_rows_are_found_when_rows_become_free():
    image = Image(ROWS)
    hwm = 64 * (ROWS + 5)
    for at in range(32, hwm, 64):
        image.put(at)
    assert image.scan(0, hwm, 0) == (0, True, None)
    assert (image.record.gap_count, image.record.scanned_position) == (ROWS, 64 * ROWS)
    image.put(0)
    assert image.scan(0, hwm, 1) == (64, True, None)
    assert (image.record.gap_count, image.record.scanned_position) == (ROWS, 64 * (ROWS + 1))


def test_an_image_tracks_a_thousand_gaps_at_a_time():
    image = Image()
    for at in range(32, 64_000, 64):
        image.put(at)
    assert image.find(0, 64_000, 0) == (0, True)
    assert (image.record.gap_count, image.record.scanned_position) == (1_000, 64_000)


def test_a_gap_without_a_free_row_for_its_second_part_is_requested_in_parts():
    image = Image(rows=1)
    image.put(96)
    assert image.naks(0, 128, [0, DELAY]) == [(DELAY, (0, 96))]
    image.put(32)
    retry = DELAY + nak_schedule.INITIAL_REPAIR_NS
    assert image.naks(0, 128, [retry, retry + MS]) == [(retry, (0, 32))]
    image.put(0)
    assert image.scan(0, 128, retry + 2 * MS)[0] == 64
    late = retry + 60_000 * MS
    assert image.naks(0, 128, [late]) == [(late, (64, 96))]


def test_data_that_arrived_since_the_gaps_were_found_is_not_requested():
    image = Image()
    image.put(64)
    image.find(0, 96, 0)
    image.put(0)
    assert image.take(DELAY) is None
    assert image.naks(0, 96, [DELAY + 1]) == [(DELAY + 1, (32, 64))]


FRAMES = st.lists(
    st.tuples(st.integers(0, 63), st.integers(1, 4), st.integers(0, 400), st.booleans()),
    max_size=60,
)
NUMBER_OF_ROWS = st.sampled_from([1, ROWS, gap_rows.GAPS_MAX])


def arrivals(steps, image):
    """Store each frame that finds its slots empty. Yield (the high-water mark, may_send_nak,
    time).
    """
    now, hwm = 0, 0
    for slot, slots, pause, may_send_nak in steps:
        now += pause * MS
        begin, end = 32 * slot, 32 * (slot + slots)
        if any(first <= begin and end <= last for first, last in image.missing(TERM)):
            image.put(begin, 32 * slots)
            hwm = max(hwm, end)
        yield hwm, may_send_nak, now


@given(FRAMES, NUMBER_OF_ROWS)
@example([(3, 1, 0, False), (1, 1, 1, True), (0, 1, 0, False), (0, 1, 100, True)], 1)
def test_agrees_with_its_naive_twin(steps, rows):
    image = Image(rows)
    twin, rebuild = naive.OpenGaps(DELAY, RETRY, rows), 0
    for hwm, may_send_nak, now in arrivals(steps, image):
        image.receive(now)
        twin.on_packet(now)
        found = image.scan(rebuild, hwm, now, may_send_nak)
        assert found == twin.scan(image.term, hwm, may_send_nak, now)
        assert image.record.repair_ns == twin.repair
        assert image.record.repair_deviation_ns == twin.deviation
        rebuild = max(rebuild, found[0])


@given(FRAMES)
def test_every_gap_is_requested_or_filled_and_none_twice_within_its_retry_delay(steps):
    image, times = Image(), defaultdict(list)
    hwm, now, rebuild = 0, 0, 0

    def turn(hwm, may_send_nak, now):
        reached, _, nak = image.scan(rebuild, hwm, now, may_send_nak)
        if nak is not None:
            assert naive.missing(image.term, *nak) == [nak]
            for at in range(*nak, 32):
                times[at].append(now)
        return max(rebuild, reached)

    for hwm, may_send_nak, now in arrivals(steps, image):
        image.receive(now)
        rebuild = turn(hwm, may_send_nak, now)
    for later in range(1, 80):
        rebuild = turn(hwm, True, now + later * MS)
    for begin, end in image.missing(hwm):
        assert all(times[at] for at in range(begin, end, 32))
    for found in times.values():
        assert all(b - a >= RETRY for a, b in itertools.pairwise(found))


@given(FRAMES, NUMBER_OF_ROWS)
def test_one_retransmit_per_nak_completes_a_stream(steps, rows):
    image, hwm, now = Image(rows), 0, 0
    for hwm, may_send_nak, now in arrivals(steps, image):
        image.scan(0, hwm, now, may_send_nak)
        assert image.record.gap_count <= rows
    while image.missing(hwm):
        now = max(now, int(image.gaps.deadline_ns[: image.record.gap_count].min()))
        nak = image.scan(0, hwm, now)[2]
        assert nak is not None
        image.put(nak[0], nak[1] - nak[0])
        image.find(0, hwm, now)
    assert image.find(0, hwm, now)[0] == hwm
