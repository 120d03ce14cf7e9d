"""Flow control compared with a dict of members, and each rule separately."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.flow import Group
from windtunnel.driver.cnc import counters
from windtunnel.driver.media_driver.sender import flow_control

ROW, COUNTER = 1, 3
FIRST = ROW * flow_control.RECEIVERS_MAX
TAG = 77
TIMEOUT = 5
NAMES = {"max": flow_control.MAX, "min": flow_control.MIN, "tagged": flow_control.TAGGED}


class Flow:
    """One publication's flow control, its limit kept by the test."""

    def __init__(self, strategy="min", least=0, timeout=TIMEOUT):
        self.flows = flow_control.make_flows(3)
        self.receivers = flow_control.make_flow_receivers(3)
        self.values = np.zeros(128 * 8, np.uint8)
        record = self.flows[ROW]
        record.strategy = NAMES[strategy]
        record.receiver_timeout_ns = timeout
        record.group_tag, record.group_min_size = TAG, least
        record.receivers_id = COUNTER
        self.limit, self.now = 0, 100

    def on_status(self, receiver, limit, window=64, *, done=False, tag=None):
        self.limit = int(
            flow_control.on_status(
                self.flows,
                self.receivers,
                ROW,
                self.values,
                self.limit,
                limit - window,
                window,
                receiver,
                done,
                tag is not None,
                tag or 0,
                self.now,
            )
        )
        return self.limit

    def idle(self, after=0):
        self.now += after
        self.limit = int(
            flow_control.on_idle(self.flows, self.receivers, ROW, self.values, self.limit, self.now)
        )
        return self.limit

    def elicit_setup(self, tag=None):
        flow_control.on_setup_elicited(self.flows, ROW, tag is not None, tag or 0)

    def setup(self):
        flow_control.on_setup(self.flows, ROW, self.limit, self.now)

    def on_error(self, receiver):
        flow_control.on_error(self.flows, self.receivers, ROW, receiver)

    def is_ready(self):
        return bool(flow_control.has_required_receivers(self.flows, ROW))

    def members(self):
        count = int(self.flows[ROW].receivers_count)
        assert counters.get(self.values, COUNTER) == count
        return {int(item.receiver_id) for item in self.receivers[FIRST : FIRST + count]}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["status"] * 6 + ["done", "idle", "elicit", "setup", "error"]),
        st.integers(1, 4),
        st.integers(0, 20),
        st.integers(1, 4),
        st.sampled_from([None, TAG, 5]),
        st.integers(0, 3),
    ),
    max_size=60,
)


@given(steps=STEPS, strategy=st.sampled_from(["min", "tagged"]), least=st.integers(0, 3))
def test_a_group_agrees_with_its_naive_twin(steps, strategy, least):
    flow = Flow(strategy, least)
    twin = Group(TIMEOUT, least, TAG if strategy == "tagged" else None)
    for operation, receiver, place, span, tag, delay in steps:
        flow.now += delay
        before = flow.limit
        if operation in ("status", "done"):
            limit, window, done = 32 * place, 32 * span, operation == "done"
            expected = twin.on_status(flow.now, before, receiver, limit, window, tag, done)
            assert flow.on_status(receiver, limit, window, done=done, tag=tag) == expected
        elif operation == "idle":
            assert flow.idle() == twin.idle(flow.now, before)
        elif operation == "elicit":
            flow.elicit_setup(tag)
            twin.elicit_setup(tag)
        elif operation == "setup":
            flow.setup()
            twin.setup(flow.now, before)
        else:
            flow.on_error(receiver)
            twin.on_error(receiver)
        assert flow.members() == set(twin.members)
        assert flow.is_ready() == (len(twin.members) >= least)


def test_max_follows_the_fastest_receiver():
    flow = Flow("max", least=3)
    assert flow.is_ready()
    assert [flow.on_status(1, 100), flow.on_status(2, 64), flow.on_status(3, 128, done=True)] == [
        100,
        100,
        128,
    ]
    flow.elicit_setup()
    flow.setup()
    assert flow.idle(after=100 * TIMEOUT) == 128
    assert flow.members() == set()


def test_min_follows_the_slowest():
    flow = Flow()
    assert [flow.on_status(1, 1000), flow.on_status(2, 980), flow.on_status(1, 1200)] == [
        1000,
        1000,
        1000,
    ]
    assert flow.idle() == 980
    assert flow.on_status(2, 1100) == 1100
    assert flow.members() == {1, 2}


@pytest.mark.parametrize(("limit", "is_member"), [(936, True), (935, False)])
def test_a_late_receiver_is_waited_for_once_it_is_within_a_window(limit, is_member):
    flow = Flow()
    flow.on_status(1, 1000)
    flow.on_status(2, limit, 64)
    assert (2 in flow.members()) == is_member
    assert flow.idle() == (limit if is_member else 1000)


def test_only_receivers_with_the_tag_are_waited_for():
    flow = Flow("tagged")
    assert flow.on_status(1, 1000, tag=TAG) == 1000
    assert flow.on_status(2, 2000, tag=5) == 1000
    assert flow.on_status(3, 3000) == 1000
    assert flow.members() == {1}


def test_without_members_other_receivers_move_the_limit_unless_members_are_required():
    assert Flow("tagged").on_status(1, 1000, tag=5) == 1000
    flow = Flow("tagged", least=1)
    assert flow.on_status(1, 1000, tag=5) == 0
    assert not flow.is_ready()
    assert flow.on_status(2, 1000, tag=TAG) == 1000
    assert flow.is_ready()


def test_a_group_that_is_too_small_does_not_move_the_limit():
    flow = Flow(least=2)
    assert flow.on_status(1, 1000) == 0
    assert (flow.is_ready(), flow.idle()) == (False, 0)
    assert flow.on_status(2, 1000) == 1000
    assert flow.is_ready()
    assert flow.on_status(2, 1100, done=True) == 1000
    assert flow.is_ready()
    flow.idle()
    assert (flow.is_ready(), flow.members()) == (False, {1})


@pytest.mark.parametrize(("after", "is_member"), [(TIMEOUT, True), (TIMEOUT + 1, False)])
def test_a_silent_member_is_removed_in_an_idle_cycle(after, is_member):
    flow = Flow()
    flow.on_status(1, 100)
    flow.idle(after)
    assert (1 in flow.members()) == is_member


def test_a_member_that_rejects_the_stream_is_removed_whatever_its_tag():
    flow = Flow("tagged")
    flow.on_status(1, 1000, tag=TAG)
    flow.on_status(2, 980, tag=TAG)
    flow.on_error(2)
    assert flow.idle() == 1000
    assert flow.members() == {1}


def test_the_limit_is_held_while_a_receiver_that_elicited_a_setup_joins():
    flow = Flow()
    flow.on_status(1, 1000)
    flow.elicit_setup()
    flow.setup()
    assert flow.on_status(1, 2000) == 1000
    assert flow.idle(TIMEOUT) == 1000
    flow.now += 1
    assert flow.on_status(1, 3000) == 3000


def test_a_receiver_that_joins_ends_the_hold():
    flow = Flow()
    flow.on_status(1, 1000)
    flow.elicit_setup()
    flow.setup()
    flow.on_status(1, 2000)
    assert flow.on_status(2, 990) == 1000
    assert flow.members() == {1, 2}
    assert flow.on_status(2, 2000) == 2000


@pytest.mark.parametrize("tag", [None, 5])
def test_an_elicitation_without_the_tag_does_not_hold_the_limit(tag):
    flow = Flow("tagged")
    flow.on_status(1, 1000, tag=TAG)
    flow.elicit_setup(tag)
    flow.setup()
    assert flow.on_status(1, 2000, tag=TAG) == 2000


def test_a_setup_without_members_does_not_hold_the_limit():
    flow = Flow()
    flow.elicit_setup()
    flow.setup()
    assert flow.on_status(1, 1000) == 1000
    flow.setup()
    assert flow.on_status(1, 2000) == 2000
