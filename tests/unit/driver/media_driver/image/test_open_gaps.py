"""All gaps, their NAK delays and their retries, against a naive reference and on their own."""

import itertools
import struct
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import open_gaps as naive
from windtunnel.driver.media_driver.image import loss_detector, open_gaps, publication_image
from windtunnel.driver.media_driver.image.publication_image import GAPS_MAX

TERM, BITS, INITIAL = 65_536, 16, -2
MS = 1_000_000
DELAY, RETRY = MS, 100 * MS


def make_image():
    image = publication_image.make_images(1)[0][0]
    image.term_length, image.bits, image.initial_term_id = TERM, BITS, INITIAL
    image.nak_delay_ns, image.nak_retry_ns, image.is_nak_all_gaps = DELAY, RETRY, 1
    return image, np.zeros(3 * TERM + 4096, np.uint8)


def put(log, at, length=32):
    struct.pack_into("<iBBH", log, at % (3 * TERM), length, 0, 0xC0, 1)


def scan(image, log, rebuild, hwm, now, may_ask=True):
    """Return (offset reached, whether a gap is new, range of the NAK or None)."""
    reached, is_new, is_due = open_gaps.scan(image, log, rebuild, hwm, may_ask, now)
    begin = int(image.gap_offset)
    return int(reached), bool(is_new), (begin, begin + int(image.gap_length)) if is_due else None


def asked(image, log, rebuild, hwm, times):
    """Return the time and the range of each NAK."""
    found = [(now, scan(image, log, rebuild, hwm, now)[2]) for now in times]
    return [(now, gap) for now, gap in found if gap is not None]


def test_asks_for_every_gap_after_one_delay_oldest_first():
    image, log = make_image()
    for at in (64, 128, 224):
        put(log, at)
    assert scan(image, log, 0, 256, 0) == (0, True, None)
    naks = asked(image, log, 0, 256, [DELAY - 1, *range(DELAY, DELAY + 6)])
    assert naks == [(DELAY, (0, 64)), (DELAY + 1, (96, 128)), (DELAY + 2, (160, 224))]


def test_asks_for_nothing_while_the_receiver_has_not_taken_the_last_range():
    image, log = make_image()
    put(log, 64)
    assert scan(image, log, 0, 96, 0)[2] is None
    assert scan(image, log, 0, 96, DELAY, may_ask=False)[2] is None
    assert scan(image, log, 0, 96, DELAY)[2] == (0, 64)


def test_a_retry_waits_for_the_measured_repair_time_and_doubles():
    image, log = make_image()
    put(log, 32)
    put(log, 96)
    naks = asked(image, log, 0, 128, range(0, 3 * MS, MS))
    assert [gap for _, gap in naks] == [(0, 32), (64, 96)]
    put(log, 0)
    assert scan(image, log, 0, 128, 201 * MS)[0] == 64
    # 200 ms from NAK to repair: 200 + 4 * 100 ms. The second gap was asked for before that.
    assert (image.repair_ns, image.repair_deviation_ns) == (200 * MS, 100 * MS)
    times = [now for now, _ in asked(image, log, 0, 128, range(201 * MS, 6_000 * MS, MS))]
    assert times[0] == 2 * MS + open_gaps.INITIAL_REPAIR_NS
    assert [b - a for a, b in itertools.pairwise(times)] == [1_200 * MS, 2_400 * MS]


def test_a_retry_never_comes_before_the_configured_delay():
    image, log = make_image()
    image.nak_retry_ns = 5_000 * MS
    put(log, 32)
    times = [now for now, _ in asked(image, log, 0, 64, range(0, 9_000 * MS, MS))]
    assert times == [MS, 5_001 * MS]


def test_a_repair_after_a_second_nak_is_not_measured():
    image, log = make_image()
    image.repair_ns, image.repair_deviation_ns = 10 * MS, MS
    put(log, 32)
    naks = asked(image, log, 0, 64, range(0, 150 * MS, MS))
    assert len(naks) == 2
    put(log, 0)
    scan(image, log, 0, 64, 150 * MS)
    assert (image.gap_count, image.repair_ns) == (0, 10 * MS)


def test_only_the_missing_parts_of_a_gap_are_asked_for_again():
    image, log = make_image()
    put(log, 320)
    assert asked(image, log, 0, 352, [0, DELAY]) == [(DELAY, (0, 320))]
    put(log, 64, 64)
    put(log, 192)
    late = DELAY + open_gaps.INITIAL_REPAIR_NS
    naks = asked(image, log, 0, 352, range(late, late + 5))
    assert [gap for _, gap in naks] == [(0, 64), (128, 192), (224, 320)]


def test_a_gap_ends_with_its_term():
    image, log = make_image()
    put(log, 0, TERM - 64)
    put(log, TERM + 64)
    naks = asked(image, log, 0, TERM + 96, range(0, 3 * DELAY, DELAY // 2))
    assert [gap for _, gap in naks] == [(TERM - 64, TERM), (0, 64)]
    assert image.gap_term_id == INITIAL + 1
    put(log, TERM - 64, 64)
    assert scan(image, log, 0, TERM + 96, 3 * DELAY)[0] == TERM


def test_a_new_byte_of_loss_is_counted_at_its_first_nak_only():
    image, log = make_image()
    put(log, 64)
    put(log, 128)
    scan(image, log, 0, 160, 0)
    # A random delay, in a group, can put the later gap first.
    image.gap_deadlines_ns[0] = 10 * MS
    counted = []
    for now in range(0, 1_000 * MS, MS):
        if scan(image, log, 0, 160, now)[2]:
            counted.append(int(loss_detector.count_new_loss(image)))
    assert counted[:2] == [32, 64]
    assert len(counted) > 2
    assert not any(counted[2:])


def test_more_gaps_than_rows_are_found_when_rows_become_free():
    image, log = make_image()
    hwm = 64 * (GAPS_MAX + 5)
    for at in range(32, hwm, 64):
        put(log, at)
    assert scan(image, log, 0, hwm, 0) == (0, True, None)
    assert (image.gap_count, image.scanned_position) == (GAPS_MAX, 64 * GAPS_MAX)
    put(log, 0)
    assert scan(image, log, 0, hwm, 1) == (64, True, None)
    assert (image.gap_count, image.scanned_position) == (GAPS_MAX, 64 * (GAPS_MAX + 1))


FRAMES = st.lists(
    st.tuples(st.integers(0, 63), st.integers(1, 4), st.integers(0, 400), st.booleans()),
    max_size=60,
)


def arrivals(steps, log, term):
    """Store each frame that finds its slots empty. Yield (the high-water mark, may_ask, time)."""
    now, hwm = 0, 0
    for slot, slots, pause, may_ask in steps:
        now += pause * MS
        begin, end = 32 * slot, 32 * (slot + slots)
        covered = naive.missing(term, 0, TERM)
        if any(first <= begin and end <= last for first, last in covered):
            struct.pack_into("<iBBH", term, begin, 32 * slots, 0, 0xC0, 1)
            hwm = max(hwm, end)
        log[:TERM] = np.frombuffer(term, np.uint8)
        yield hwm, may_ask, now


@given(FRAMES)
def test_agrees_with_its_naive_twin(steps):
    (image, log), term = make_image(), bytearray(TERM)
    twin, rebuild = naive.OpenGaps(DELAY, RETRY, GAPS_MAX), 0
    for hwm, may_ask, now in arrivals(steps, log, term):
        found = scan(image, log, rebuild, hwm, now, may_ask)
        assert found == twin.see(term, hwm, may_ask, now)
        assert (image.repair_ns, image.repair_deviation_ns) == (twin.repair, twin.deviation)
        rebuild = max(rebuild, found[0])


@given(FRAMES)
def test_every_gap_is_asked_for_or_filled_and_none_twice_within_its_retry_delay(steps):
    (image, log), term = make_image(), bytearray(TERM)
    times, hwm, now, rebuild = defaultdict(list), 0, 0, 0

    def turn(hwm, may_ask, now):
        reached, _, nak = scan(image, log, rebuild, hwm, now, may_ask)
        if nak is not None:
            assert naive.missing(term, *nak) == [nak]
            for at in range(*nak, 32):
                times[at].append(now)
        assert image.gap_count <= GAPS_MAX
        return max(rebuild, reached)

    for hwm, may_ask, now in arrivals(steps, log, term):
        rebuild = turn(hwm, may_ask, now)
    for later in range(1, 80):
        rebuild = turn(hwm, True, now + later * MS)
    for begin, end in naive.missing(term, 0, hwm):
        assert all(times[at] for at in range(begin, end, 32))
    for found in times.values():
        assert all(b - a >= RETRY for a, b in itertools.pairwise(found))
