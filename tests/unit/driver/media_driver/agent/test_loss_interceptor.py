"""Loss interceptors drop exactly the datagrams that the C driver drops."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import losses as naive
from tests.naive import wire
from tests.unit.driver.media_driver.receiving_rig import data, heartbeat, pad, setup
from windtunnel.driver.media_driver.agent import loss_interceptor
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)

TERM = 65_536


def make(*names, random=None, fixed=None, gaps=None):
    return loss_interceptor.make_losses(
        names, random or RandomLoss(), fixed or FixedLoss(), gaps or MultiGapLoss()
    )


def is_lost(losses, datagram):
    buf = np.frombuffer(datagram + bytes(64), np.uint8).copy()
    return bool(loss_interceptor.is_lost(losses, buf, 0, len(datagram)))


def erand48(seed, count):
    """Return numbers of the C library, seeded like in the C driver."""
    words = [(seed >> shift) & 0xFFFF for shift in (32, 16, 0)]
    state = (ctypes.c_ushort * 3)(*words)
    function = ctypes.CDLL(None).erand48
    function.restype = ctypes.c_double
    return [function(state) for _ in range(count)]


@pytest.mark.parametrize("seed", [0, 1, 0xDEADBEEFCAFE, 2**64 - 7])
def test_random_numbers_are_those_of_the_c_library(seed):
    losses = make("loss", random=RandomLoss(0.3, seed, 0xFFFF))
    seen = [is_lost(losses, data(0, 100)) for _ in range(500)]
    assert seen == [number <= 0.3 for number in erand48(seed, 500)]
    assert 100 < sum(seen) < 200


def test_random_numbers_are_drawn_only_for_frame_types_in_the_mask():
    losses = make("loss", random=RandomLoss(1.0, 7, 1 << wire.SETUP | 1 << wire.DATA))
    seen = [
        is_lost(losses, item)
        for item in (setup(), data(0, 9), heartbeat(0), pad(0, 64), b"\0" * 7, b"")
    ]
    assert seen == [True, True, True, False, False, False]
    unknown = bytearray(setup())
    unknown[6:8] = b"\x25\0"
    assert not is_lost(losses, bytes(unknown))


@pytest.mark.parametrize("random", [RandomLoss(0.0, 7, 0xFFFF), RandomLoss(1.0, 7, 0)])
def test_a_zero_rate_or_an_empty_mask_loses_nothing(random):
    losses = make("loss", random=random)
    assert not any(is_lost(losses, data(0, 100)) for _ in range(50))


def test_without_names_there_is_no_interceptor():
    assert make() is loss_interceptor.NO_LOSSES
    assert not is_lost(make(), data(0, 100))


def test_a_fixed_range_is_lost_only_once():
    losses = make("fixed-loss", fixed=FixedLoss(7, 2048, 2048))
    offsets = [0, 1024, 2048, 3072, 4096]
    first = [is_lost(losses, data(at, 992)) for at in offsets]
    assert first == [True, True, True, True, False]
    assert not any(is_lost(losses, data(at, 992)) for at in offsets)
    assert is_lost(losses, data(0, 992, session_id=8))
    assert not is_lost(losses, data(TERM, 992, session_id=9))


def test_gaps_lie_at_the_multiples_of_the_radix():
    losses = make("multi-gap-loss", gaps=MultiGapLoss(7, 4096, 1024, 2))
    offsets = range(0, 5 * 4096, 1024)
    seen = [at for at in offsets if is_lost(losses, data(at, 992))]
    assert seen == [4096, 8192]
    assert not any(is_lost(losses, data(at, 992)) for at in offsets)


def test_several_interceptors_are_applied_in_order():
    losses = make(
        "fixed-loss", "multi-gap-loss", fixed=FixedLoss(7, 0, 32), gaps=MultiGapLoss(7, 4096, 32, 9)
    )
    assert [is_lost(losses, data(at, 992)) for at in (0, 1024, 4096, 5120)] == [
        True,
        False,
        True,
        False,
    ]


PASSES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(1, 40), st.integers(6, 8), st.integers(1, 2)),
    max_size=60,
)


@given(PASSES, st.integers(0, 3_200), st.integers(0, 3_200))
def test_a_fixed_range_agrees_with_its_naive_twin(passes, offset, length):
    losses = make("fixed-loss", fixed=FixedLoss(7, offset, length))
    compare(losses, naive.FixedLoss(7, offset + length), passes)


@given(PASSES, st.integers(1, 2_000), st.integers(0, 400), st.integers(0, 6))
def test_gaps_agree_with_their_naive_twin(passes, radix, gap_length, gaps):
    losses = make("multi-gap-loss", gaps=MultiGapLoss(7, radix, gap_length, gaps))
    compare(losses, naive.MultiGapLoss(7, radix, gap_length, gaps), passes)


def compare(losses, twin, passes):
    for slot, slots, term_id, session_id in passes:
        offset, length = 32 * slot, 32 * slots
        datagram = data((term_id - 7) * TERM + offset, length - 32, session_id=session_id)
        expected = twin.loses((1001, session_id), term_id, offset, length)
        assert is_lost(losses, datagram) == expected
