"""NAK delays: fixed, or random for a group."""

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import nak_delay as naive
from windtunnel.driver.media_driver.image import loss_detector, nak_delay, publication_image

MS = 1_000_000


def make_image():
    records, _ = publication_image.make_images(1)
    return records[0]


def test_the_first_delay_and_the_retry_delay_of_a_static_strategy_are_fixed():
    image = make_image()
    nak_delay.fill_static(image, 1_000, 100_000)
    assert [nak_delay.next_delay_ns(image, again) for again in (False, True, False)] == [
        1_000,
        100_000,
        1_000,
    ]


@pytest.mark.parametrize(("naks", "factor"), [(15, 1), (16, 2), (32, 4), (64, 16), (10**9, 16)])
def test_only_retries_back_off(naks, factor):
    image = make_image()
    nak_delay.fill_static(image, 1_000, 100_000)
    image.gap_naks = naks
    assert nak_delay.next_delay_ns(image, True) == 100_000 * factor
    assert nak_delay.next_delay_ns(image, False) == 1_000
    nak_delay.fill_backoff(image, 10 * MS, 10, 7)
    (uniform,) = naive.draws(7, 1)
    assert (
        abs(nak_delay.next_delay_ns(image, True) // factor - naive.delay_ns(uniform, 10 * MS, 10))
        <= 1
    )


@given(st.integers(1, 2**32 - 1), st.integers(1_000, 10**9), st.integers(1, 1_000))
def test_agrees_with_its_naive_twin(seed, max_backoff_ns, group_size):
    image = make_image()
    nak_delay.fill_backoff(image, max_backoff_ns, group_size, seed)
    for uniform in naive.draws(seed, 20):
        expected = naive.delay_ns(uniform, max_backoff_ns, group_size)
        got = nak_delay.next_delay_ns(image, False)
        assert abs(got - expected) <= 1
        assert 0 <= got <= max_backoff_ns


def test_most_group_members_wait_long_and_few_send_early():
    image = make_image()
    nak_delay.fill_backoff(image, 10 * MS, 10, 7)
    delays = [nak_delay.next_delay_ns(image, False) for _ in range(5_000)]
    assert statistics.median(delays) > 7 * MS
    assert 0.005 < sum(delay < MS for delay in delays) / len(delays) < 0.05


@pytest.mark.parametrize("seed", [0, 2**32, 2**64 - 1])
def test_any_seed_gives_random_delays(seed):
    image = make_image()
    nak_delay.fill_backoff(image, 10 * MS, 10, seed)
    assert len({nak_delay.next_delay_ns(image, False) for _ in range(50)}) > 40


def test_the_nak_times_of_a_group_member_are_random_and_repeat_with_the_seed():
    def nak_times(seed):
        image, log = make_image(), np.zeros(3 * 65_536 + 4096, np.uint8)
        image.term_length, image.bits = 65_536, 16
        nak_delay.fill_backoff(image, 10 * MS, 10, seed)
        steps = range(0, 100 * MS, MS // 4)
        return [now for now in steps if loss_detector.scan(image, log, 0, 128, now)[2]]

    assert nak_times(3) == nak_times(3) != nak_times(4)
    assert 9 <= len(nak_times(3)) <= 40
    assert all(later - sooner <= 10.25 * MS for sooner, later in itertools.pairwise(nak_times(3)))
