"""Receiver windows: constant, or adapted to losses."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.cubic import Cubic
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.image import congestion_control, cubic, publication_image

MS, SECOND = 1_000_000, 1_000_000_000
MTU, WINDOW_MAX = 1408, 131_072
RTT_ID, WINDOW_ID = 3, 4


class State(NamedTuple):
    """The arrays that the strategies use, named as in the agents."""

    images: np.ndarray
    image_words: np.ndarray
    words: np.ndarray
    counters: np.ndarray


def blank_state():
    images, words = publication_image.make_images(2)
    return State(images, words, words, np.zeros(128 * 8, np.uint8))


def make_state(*, window_max=WINDOW_MAX, is_tcp=False, measures=False, rtt_ns=100_000, now_ns=0):
    state = blank_state()
    image = state.images[1]
    image.window_max, image.mtu = window_max, MTU
    image.congestion_control = congestion_control.CUBIC
    cubic.fill(
        image,
        initial_rtt_ns=rtt_ns,
        is_measuring_rtt=measures,
        is_tcp_mode=is_tcp,
        rtt_id=RTT_ID,
        window_id=WINDOW_ID,
        now_ns=now_ns,
    )
    return state


@pytest.mark.parametrize(
    ("configured", "term_length", "window"),
    [
        (131_072, 65_536, 32_768),
        (131_072, 1 << 20, 131_072),
        (1408, 65_536, 1408),
        (32_768, 65_536, 32_768),
        (32_800, 65_536, 32_768),
    ],
)
def test_the_window_is_at_most_half_a_term(configured, term_length, window):
    assert congestion_control.initial_window(configured, term_length) == window


def turn(state, now_ns, *, is_loss=False, has_consumed=False):
    """Run one duty cycle of the conductor. Returns (window, whether to send it at once)."""
    lowest = int(state.images[1].next_status_position) + 32 * has_consumed
    return congestion_control.on_track_rebuild(state, 1, now_ns, lowest, is_loss)


def test_a_static_window_never_changes_and_forces_no_status_message():
    state = blank_state()
    state.images[1].window_max = 4096
    for is_loss in (False, True):
        assert turn(state, 5, is_loss=is_loss, has_consumed=True) == (4096, False)
    assert not congestion_control.should_measure_rtt(state.images[1], 10 * SECOND)
    congestion_control.on_rtt(state, 1, SECOND, 5 * MS)
    assert not state.counters.any()


@pytest.mark.parametrize(
    ("window_max", "window"),
    [(WINDOW_MAX, 10 * MTU), (5 * MTU + 9, 5 * MTU), (10 * MTU, 10 * MTU), (MTU - 8, MTU - 8)],
)
def test_cubic_starts_with_ten_packets_and_stays_below_the_maximum(window_max, window):
    state = make_state(window_max=window_max)
    assert cubic.initial_window(window_max, MTU) == window
    assert turn(state, 1) == (window, False)
    assert counters.get(state.counters, WINDOW_ID) == window
    for second in range(1, 400):
        grown, is_forced = turn(state, second * SECOND)
        assert grown <= max(window_max // MTU * MTU, window)
        assert not is_forced
    assert grown == max(window_max // MTU * MTU, window)


def test_a_loss_reduces_the_window_by_a_fifth_and_forces_a_status_message():
    state = make_state()
    seen = [turn(state, 1, is_loss=True) for _ in range(12)]
    assert [window // MTU for window, _ in seen] == [8, 6, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    assert all(is_forced for _, is_forced in seen)
    assert turn(state, 2) == (MTU, False)
    assert turn(state, 3, has_consumed=True) == (MTU, True)


def test_a_window_grows_only_after_its_interval():
    state = make_state(now_ns=SECOND)
    assert turn(state, SECOND + 100_000)[0] == 10 * MTU
    assert turn(state, SECOND + 100_001)[0] > 10 * MTU


STEPS = st.lists(
    st.tuples(
        st.integers(1, 3 * SECOND), st.sampled_from([False, False, False, True]), st.booleans()
    ),
    max_size=60,
)


@given(STEPS, st.integers(MTU, 1 << 20), st.booleans(), st.integers(1_000, SECOND))
def test_cubic_agrees_with_its_naive_twin(steps, window_max, is_tcp, rtt_ns):
    state = make_state(window_max=window_max, is_tcp=is_tcp, rtt_ns=rtt_ns)
    twin = Cubic(window_max, MTU, rtt_ns, 0, is_tcp=is_tcp)
    now_ns = 0
    for passed_ns, is_loss, has_consumed in steps:
        now_ns += passed_ns
        window, is_forced = turn(state, now_ns, is_loss=is_loss, has_consumed=has_consumed)
        expected, expected_forced = twin.turn(now_ns, is_loss, has_consumed)
        # Two ways to take a cube root differ in the last bit, which may be a whole packet.
        assert abs(window - expected) <= MTU
        assert is_forced == expected_forced or abs(window - expected) > 0
        twin.packets = int(state.images[1].cubic_packets)


def test_in_tcp_mode_the_window_grows_with_the_round_trips():
    state = make_state(is_tcp=True, rtt_ns=1 * MS)
    state.images[1].cubic_packets = 60
    assert turn(state, 0, is_loss=True)[0] == 48 * MTU
    for round_trips, packets in ((3, 49), (30, 58), (36, 60)):
        assert turn(state, round_trips * MS)[0] == packets * MTU


def test_a_window_that_grew_for_years_does_not_exceed_its_maximum():
    state = make_state(is_tcp=True)
    turn(state, 1, is_loss=True)
    assert turn(state, 1 << 62)[0] == WINDOW_MAX // MTU * MTU


def test_a_round_trip_is_measured_again_after_four_round_trips():
    state = make_state(measures=True, rtt_ns=100_000)
    image = state.images[1]
    image.last_rtt_ns = SECOND
    assert not congestion_control.should_measure_rtt(image, SECOND + 400_000)
    assert congestion_control.should_measure_rtt(image, SECOND + 400_001)
    congestion_control.on_rtt(state, 1, SECOND + 500_000, 2 * MS)
    assert counters.get(state.counters, RTT_ID) == 2 * MS
    assert publication_image.shared_acquire(state.words, 1, publication_image.RTT_NS) == 2 * MS
    assert not congestion_control.should_measure_rtt(image, SECOND + 500_000 + 8 * MS)
    assert congestion_control.should_measure_rtt(image, SECOND + 500_001 + 8 * MS)


@pytest.mark.parametrize("rtt_ns", [-1, 61 * SECOND, -(1 << 62), 1 << 62])
def test_an_impossible_round_trip_is_ignored(rtt_ns):
    state = make_state(measures=True)
    congestion_control.on_rtt(state, 1, SECOND, rtt_ns)
    assert counters.get(state.counters, RTT_ID) == 0
    assert state.images[1].last_rtt_ns == 0


def test_nothing_is_measured_unless_requested():
    assert not congestion_control.should_measure_rtt(make_state().images[1], SECOND)
