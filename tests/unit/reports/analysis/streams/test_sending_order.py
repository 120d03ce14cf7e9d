"""The identifications of packets show the sending order, or are found to be no counter."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.sending_order import orders_of
from windtunnel.reports.analysis.streams import sending_order as kernel

MANY = 400


def ordered(packets, flows=None, at_once=1 << 30):
    """Return (order or None, whether it is trusted) of each (identification or None, packet,
    position).
    """
    senders = np.zeros(2, dtype=kernel.SENDER)
    found = []
    for first in range(0, len(packets), at_once):
        part = packets[first : first + at_once]
        orders = np.zeros(len(part), dtype=np.int64)
        is_believed = np.zeros(len(part), dtype=np.bool_)
        numbers = [kernel.NO_IDENTIFICATION if each[0] is None else each[0] for each in part]
        kernel.put_in_order(
            np.ones(len(part), dtype=np.bool_),
            np.array((flows or [0] * len(packets))[first : first + at_once], dtype=np.int32),
            np.array(numbers, dtype=np.int32),
            np.array([each[1] for each in part], dtype=np.int64),
            np.array([each[2] for each in part], dtype=np.int64),
            orders,
            is_believed,
            senders,
        )
        found += [
            (None if each == kernel.UNKNOWN else int(each), bool(trusted))
            for each, trusted in zip(orders, is_believed, strict=True)
        ]
    return found


def sent(first, count, step=lambda: 1):
    """Make packets of a counting sender: (place, identification, position), each with new bytes."""
    place, packets = first, []
    for index in range(count):
        packets.append((place, place % (1 << 16), 64 * index))
        place += step()
    return packets


def carried(packets, rng, loses=0.05, holds=0.05, copies=0.05):
    """Return the arrivals: (place, identification, packet, position); held packets arrive later."""
    arrivals = []
    for index, each in enumerate(packets):
        at = index + (rng.uniform(2, 60) if rng.random() < holds else 0)
        if rng.random() >= loses:
            arrivals.append((at, each))
        if rng.random() < copies:
            arrivals.append((at + rng.uniform(0, 4), each))
    arrivals.sort(key=lambda pair: pair[0])
    return [(place, number, at, start) for at, (_, (place, number, start)) in enumerate(arrivals)]


STEPS = st.sampled_from([None, 0, *[1] * 12, 2, 2, 3, 900, 1_025, -1, -3, -70, -16_385, 30_000])
PACKETS = st.lists(st.tuples(STEPS, st.booleans(), st.integers(-3, 3)), max_size=120)


def stepped(raw):
    """Make packets whose numbers are mostly one more than the highest before."""
    packets, number, packet = [], 65_500, 0
    for index, (step, is_same_packet, away) in enumerate(raw):
        packet += not (is_same_packet and packets)
        identification = None if step is None else (number + step) % (1 << 16)
        packets.append((identification, packet, 32 * max(0, index + away)))
        number += max(step or 0, 0)
    return packets


@given(PACKETS, st.integers(1, 70))
def test_agrees_with_the_naive_twin(raw, at_once):
    packets = stepped(raw)
    assert ordered(packets, at_once=at_once) == orders_of(packets)


def test_examples_are_trusted_and_put_in_order():
    """The packets of the test above include some whose order is trusted."""
    raw = [(1, False, 0)] * 30 + [(-3, False, -3), (1, True, 0), (2, False, 0)]
    *_, before, late, same, ahead = ordered(stepped(raw))
    assert late == (before[0] - 3, True)
    assert same == (late[0], True)
    assert ahead == (before[0] + 3, True)


@pytest.mark.parametrize("seed", range(20))
def test_a_sender_that_counts_is_put_in_order_whatever_the_link_does(seed):
    rng = random.Random(seed)
    packets = sent(rng.choice([1, 40_000, 65_400]), MANY, lambda: rng.choice([1, 1, 1, 2, 9]))
    arrivals = carried(packets, rng)
    orders = ordered([each[1:] for each in arrivals])
    assert orders == orders_of([each[1:] for each in arrivals])
    trusted = [
        (order, place)
        for (order, is_believed), (place, *_) in zip(orders, arrivals, strict=True)
        if is_believed
    ]
    assert len(trusted) > MANY // 2
    assert len({order - place for order, place in trusted}) == 1


@pytest.mark.parametrize(
    "number",
    [lambda rng, index: 0, lambda rng, index: 7, lambda rng, index: rng.randrange(1 << 16)],
    ids=["none", "always the same", "random"],
)
def test_a_sender_that_does_not_count_is_never_trusted(number):
    rng = random.Random(5)
    packets = [(number(rng, index), index, 64 * index) for index in range(5_000)]
    assert {is_believed for _, is_believed in ordered(packets)} == {False}


def test_frames_of_one_packet_have_one_order():
    packets = [(index // 3, index // 3, 32 * index) for index in range(300)]
    orders = [order for order, is_believed in ordered(packets) if is_believed]
    assert orders[-6:] == [orders[-4]] * 3 + [orders[-1]] * 3
    assert orders[-1] == orders[-4] + 1


def test_numbers_stay_trusted_if_a_middlebox_splits_datagrams():
    packets = []
    for number in range(2_000):
        frames = [1_440 * number + 480 * index for index in range(3)]
        packets += [(number, 3 * number + index, start) for index, start in enumerate(frames)]
    assert all(is_believed for _, is_believed in ordered(packets)[100:])


def test_packets_of_a_restarted_counter_are_not_called_late():
    """A new socket counts from any number, also from one slightly lower."""
    for restart in (9_000, 15_000, 30_000, 60_000):
        packets = [(10_000 + index, index, 64 * index) for index in range(100)]
        packets += [(restart + index, 100 + index, 6_400 + 64 * index) for index in range(100)]
        orders = [order for order, _ in ordered(packets)]
        assert orders[16:] == sorted(set(orders[16:])), restart


def test_a_sender_that_no_longer_counts_is_soon_not_trusted():
    """This happens when another stream begins on the socket, however long this one was alone."""
    rng = random.Random(9)
    packets = [(index % (1 << 16), index, 64 * index) for index in range(50_000)]
    at = len(packets)
    packets += [(rng.randrange(1 << 16), at + index, 64 * (at + index)) for index in range(2_000)]
    trusted = [is_believed for _, is_believed in ordered(packets)]
    assert all(trusted[100:at])
    assert not any(trusted[at + 200 :])


def test_flows_are_independent():
    rng = random.Random(3)
    arrivals = [each[1:] for each in carried(sent(70, MANY), rng)]
    doubled = [each for each in arrivals for _ in range(2)]
    both = ordered(doubled, flows=[index % 2 for index in range(len(doubled))])
    assert both[::2] == both[1::2] == ordered(arrivals)
