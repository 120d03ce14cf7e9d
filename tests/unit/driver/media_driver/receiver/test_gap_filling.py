"""Gaps of an unreliable stream that a receiver fills on evidence, and those filled too early."""

import pytest

from tests.sim.stream_pair import FILLED_EARLY, GAPS_OPEN, MS, OLDEST_GAP
from tests.unit.driver.media_driver.receiving_rig import ReceivingRig, data, heartbeat
from windtunnel.driver.media_driver.agent import system_counters

DELAY = 20 * MS
FRAME = 1024


@pytest.fixture
def rig(tmp_path):
    rig = ReceivingRig(tmp_path, reliable=False)
    rig.start()
    image = rig.state.images[0]
    image.is_fill_delayed, image.fill_datagrams, image.fill_delay_ns = 1, 4, DELAY
    return rig


def deliver(rig, *numbers):
    """Deliver datagrams in this order, and process each. Returns the frames before rcv-pos."""
    for number in numbers:
        rig.deliver(data(FRAME * number, FRAME - 32))
        for _ in range(3):
            rig.turn()
    return rig.positions[0] // FRAME


def fills(rig):
    """Return (gaps filled, gaps filled too early)."""
    return rig.value(system_counters.LOSS_GAP_FILLS), rig.value(FILLED_EARLY)


def test_a_datagram_that_was_overtaken_by_three_is_kept(rig):
    assert deliver(rig, 0, 2, 3, 4) == 1
    assert deliver(rig, 1, 5, 6, 7) == 8
    assert fills(rig) == (0, 0)


def test_a_lost_datagram_is_replaced_after_four_later_ones(rig):
    assert deliver(rig, 0, 2, 3, 4) == 1
    assert deliver(rig, 5) == 6
    assert fills(rig) == (1, 0)


def test_a_gap_at_the_end_is_filled_after_the_delay(rig):
    deliver(rig, 0)
    rig.deliver(heartbeat(2 * FRAME))
    rig.turn()
    rig.turn(1)
    rig.turn(DELAY - 1)
    assert fills(rig) == (0, 0)
    rig.turn(1)
    rig.turn(1)
    assert (fills(rig), rig.positions[0]) == ((1, 0), 2 * FRAME)


def test_a_heartbeat_that_shows_later_data_is_evidence_once(rig):
    deliver(rig, 0, 2, 3)
    for _ in range(3):
        rig.deliver(heartbeat(5 * FRAME))
        rig.turn()
        rig.turn()
    assert fills(rig) == (0, 0)
    # The gap before the heartbeat has no other evidence yet.
    assert deliver(rig, 5) == 4
    assert fills(rig) == (1, 0)


def test_a_datagram_that_arrives_after_its_gap_was_filled_is_counted_once(rig):
    deliver(rig, 0, 2, 3, 4, 5)
    assert deliver(rig, 1, 1) == 6
    assert fills(rig) == (1, 1)
    # The same, after the subscriber has consumed the padding.
    deliver(rig, 7, 8, 9, 10)
    rig.consume(11 * FRAME)
    rig.turn(300 * MS)
    rig.turn(300 * MS)
    assert rig.state.images[0].last_status_position == 11 * FRAME
    assert deliver(rig, 6, 6) == 11
    assert fills(rig) == (2, 2)


def test_a_late_heartbeat_and_a_duplicate_are_no_sign_of_an_early_fill(rig):
    deliver(rig, 0, 2, 3, 4, 5, 2, 0)
    rig.deliver(heartbeat(FRAME))
    rig.turn()
    assert fills(rig) == (1, 0)


def test_all_gaps_that_are_due_are_filled_in_one_duty_cycle(rig):
    deliver(rig, *range(1, 30, 2))
    assert fills(rig) == (12, 0)
    rig.turn(DELAY)
    assert fills(rig) == (15, 0)


def test_counters_show_the_open_gaps_and_the_age_of_the_oldest(rig):
    deliver(rig, 0, 2, 4)
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (2, 0)
    rig.turn(5 * MS)
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (2, 5 * MS)
    deliver(rig, 1)
    rig.turn(MS)
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (1, 6 * MS)
    deliver(rig, 3)
    assert (rig.value(GAPS_OPEN), rig.value(OLDEST_GAP)) == (0, 0)


def test_gaps_are_filled_at_once_by_default(rig):
    rig.state.images[0].is_fill_delayed = 0
    assert deliver(rig, 0, 2) == 3
    assert deliver(rig, 1) == 3
    assert fills(rig) == (1, 0)


def test_no_gap_of_a_revoked_stream_is_filled(rig):
    deliver(rig, 0, 2)
    rig.deliver(heartbeat(3 * FRAME, flags=0xF0))
    rig.turn()
    rig.turn(2 * DELAY)
    rig.turn(2 * DELAY)
    assert fills(rig) == (0, 0)
