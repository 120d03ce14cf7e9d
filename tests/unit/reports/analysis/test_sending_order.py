"""The numbers of packets tell in which order they were sent, or are known to tell nothing."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.analysis import sending_order as kernel
from tests.naive.sending_order import orders_of

MANY = 400


def told(packets, flows=None, at_once=1 << 30):
    """The order of each (identification or None, packet, position), None if it is not believed."""
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
        assert [each != kernel.UNKNOWN for each in orders] == [each[0] is not None for each in part]
        found += [
            int(each) if told else None for each, told in zip(orders, is_believed, strict=True)
        ]
    return found


def sent(first, count, step=lambda: 1):
    """What a sender that counts sent: (place, identification, position), new bytes in each."""
    place, made = first, []
    for index in range(count):
        made.append((place, place % (1 << 16), 64 * index))
        place += step()
    return made


def carried(packets, rng, loses=0.05, holds=0.05, copies=0.05):
    """What comes by of them: (place, identification, packet, position); held ones come later."""
    arrivals = []
    for index, each in enumerate(packets):
        at = index + (rng.uniform(2, 60) if rng.random() < holds else 0)
        if rng.random() >= loses:
            arrivals.append((at, each))
        if rng.random() < copies:
            arrivals.append((at + rng.uniform(0, 4), each))
    arrivals.sort(key=lambda pair: pair[0])
    return [(place, number, at, start) for at, (_, (place, number, start)) in enumerate(arrivals)]


NUMBERS = st.one_of(st.none(), st.integers(0, 40), st.integers(0, 65_535))
PACKETS = st.lists(st.tuples(NUMBERS, st.integers(0, 3), st.integers(0, 50)), max_size=60)


@given(PACKETS, st.integers(1, 70))
def test_agrees_with_the_naive_twin(raw, at_once):
    packets = [(number, 4 * index + packet, 32 * start)
               for index, (number, packet, start) in enumerate(raw)]  # fmt: skip
    assert told(packets, at_once=at_once) == orders_of(packets)


@pytest.mark.parametrize("seed", range(20))
def test_a_sender_that_counts_is_put_in_order_whatever_the_link_does(seed):
    rng = random.Random(seed)
    packets = sent(rng.choice([1, 40_000, 65_400]), MANY, lambda: rng.choice([1, 1, 1, 2, 9]))
    came = carried(packets, rng)
    orders = told([each[1:] for each in came])
    assert orders == orders_of([each[1:] for each in came])
    believed = [(order, place) for order, (place, *_) in zip(orders, came, strict=True) if order]
    assert len(believed) > MANY // 2
    assert len({order - place for order, place in believed}) == 1


@pytest.mark.parametrize(
    "number",
    [lambda rng, index: 0, lambda rng, index: 7, lambda rng, index: rng.randrange(1 << 16)],
    ids=["none", "always the same", "drawn by lot"],
)
def test_a_sender_that_does_not_count_is_never_believed(number):
    rng = random.Random(5)
    packets = [(number(rng, index), index, 64 * index) for index in range(5_000)]
    assert set(told(packets)) == {None}


def test_frames_of_one_packet_have_one_order():
    packets = [(index // 3, index // 3, 32 * index) for index in range(300)]
    orders = told(packets)
    assert orders[-6:] == [orders[-4]] * 3 + [orders[-1]] * 3
    assert orders[-1] == orders[-4] + 1


def test_a_sender_that_begins_anew_is_not_taken_for_late():
    """A new socket counts from anywhere, also from little below."""
    for anew in (9_000, 15_000, 30_000, 60_000):
        packets = [(10_000 + index, index, 64 * index) for index in range(100)]
        packets += [(anew + index, 100 + index, 6_400 + 64 * index) for index in range(100)]
        orders = told(packets)
        assert orders[16:] == sorted(set(orders[16:])), anew


def test_flows_do_not_touch_each_other():
    rng = random.Random(3)
    came = [each[1:] for each in carried(sent(70, MANY), rng)]
    twice = [each for each in came for _ in range(2)]
    both = told(twice, flows=[index % 2 for index in range(len(twice))])
    assert both[::2] == both[1::2] == told(came)
