"""Who listens, and how far the sender may run: against a dict, with times and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.media_driver import flow_control
from tests.naive.flow import Receivers

ROW = 1
FIRST = ROW * flow_control.RECEIVERS_MAX
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hear", "hear", "hear", "done", "expire"]),
        st.integers(-2, 4),
        st.integers(0, 3),
    ),
    max_size=60,
)


def row_of(receivers, count):
    return {
        int(item.receiver_id): (int(item.last_status_ns), int(item.position), int(item.limit))
        for item in receivers[FIRST : FIRST + count]
    }


@given(steps=STEPS)
def test_agrees_with_its_naive_twin(steps):
    receivers = flow_control.make_receivers(3)
    twin, count, now = Receivers(flow_control.RECEIVERS_MAX), 0, 0
    for number, (operation, receiver, delay) in enumerate(steps):
        now += delay
        if operation == "hear":
            fields = (32 * number, 32 * number + 64, now)
            count = flow_control.on_receiver_alive(receivers, ROW, count, receiver, *fields)
            assert count == twin.hear(receiver, *fields)
        elif operation == "done":
            count = flow_control.on_receiver_done(receivers, ROW, count, receiver)
            assert count == twin.done(receiver)
        else:
            count = flow_control.expire(receivers, ROW, count, 3, now)
            assert count == twin.expire(3, now)
        assert row_of(receivers, count) == twin.alive
    assert not receivers[:FIRST].receiver_id.any()
    assert not receivers[FIRST + flow_control.RECEIVERS_MAX :].receiver_id.any()


def test_a_receiver_beyond_the_most_is_not_remembered():
    receivers, count = flow_control.make_receivers(1), 0
    for receiver in range(flow_control.RECEIVERS_MAX + 1):
        count = flow_control.on_receiver_alive(receivers, 0, count, receiver, 0, 0, 5)
    assert count == flow_control.RECEIVERS_MAX
    assert flow_control.expire(receivers, 0, count, 10, 15) == 0


@pytest.mark.parametrize(("age_ns", "alive"), [(4, 1), (5, 0)])
def test_silence_counts_from_the_last_status_message(age_ns, alive):
    receivers = flow_control.make_receivers(1)
    count = flow_control.on_receiver_alive(receivers, 0, 0, 7, 0, 0, 100)
    assert flow_control.expire(receivers, 0, count, 5, 100 + age_ns) == alive


def test_the_fastest_receiver_sets_the_limit():
    assert flow_control.limit_after_status(flow_control.MAX, 100, 64) == 100
    assert flow_control.limit_after_status(flow_control.MAX, 100, 128) == 128
    assert flow_control.limit_when_idle(flow_control.MAX, 100) == 100
