"""Receiver liveness compared with a dict of times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.flow import Receivers
from windtunnel.driver.media_driver.sender import receiver_liveness

ROW = 1
MOST = receiver_liveness.RECEIVERS_MAX
FIRST = ROW * MOST
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["status", "status", "status", "done", "expire"]),
        st.integers(-2, 4),
        st.integers(0, 3),
        st.integers(0, 9),
    ),
    max_size=60,
)


def row_of(receivers, count):
    return {
        int(item.receiver_id): int(item.last_status_ns) for item in receivers[FIRST : FIRST + count]
    }


@given(steps=STEPS)
def test_agrees_with_its_naive_twin(steps):
    receivers = receiver_liveness.make_receivers(3)
    twin, count, now = Receivers(MOST), 0, 0
    for operation, receiver, delay, position in steps:
        now += delay
        if operation == "status":
            count = receiver_liveness.on_receiver_alive(
                receivers, ROW, count, receiver, position, now
            )
            assert count == twin.on_status(receiver, now, position)
        elif operation == "done":
            count = receiver_liveness.on_receiver_done(receivers, ROW, count, receiver)
            assert count == twin.done(receiver)
        else:
            count = receiver_liveness.expire(receivers, ROW, count, 3, now)
            assert count == twin.expire(3, now)
        assert row_of(receivers, count) == twin.alive
        assert receiver_liveness.lowest_position(receivers, ROW, count) == twin.lowest()
        found = receiver_liveness.find(receivers, ROW, count, receiver)
        assert (found >= 0) == (receiver in twin.alive)
    assert not receivers[:FIRST].receiver_id.any()
    assert not receivers[FIRST + MOST :].receiver_id.any()


def test_a_receiver_beyond_the_maximum_replaces_the_one_silent_for_longest():
    receivers, twin, count = receiver_liveness.make_receivers(3), Receivers(MOST), 0
    order = [*range(MOST), *range(MOST // 2), *range(MOST, MOST + 3), MOST, 0]
    for now, receiver in enumerate(order):
        count = receiver_liveness.on_receiver_alive(receivers, ROW, count, receiver, 0, now)
        assert count == twin.on_status(receiver, now)
    assert row_of(receivers, count) == twin.alive
    assert not {MOST // 2, MOST // 2 + 1, MOST // 2 + 2} & set(twin.alive)
    assert {MOST, MOST + 1, MOST + 2} <= set(twin.alive)


@pytest.mark.parametrize(("age_ns", "alive"), [(4, 1), (5, 0)])
def test_the_timeout_starts_at_the_last_status_message(age_ns, alive):
    receivers = receiver_liveness.make_receivers(1)
    count = receiver_liveness.on_receiver_alive(receivers, 0, 0, 7, 0, 100)
    assert receiver_liveness.expire(receivers, 0, count, 5, 100 + age_ns) == alive
