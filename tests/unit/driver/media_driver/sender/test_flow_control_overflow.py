"""Flow control of receivers beyond RECEIVERS_MAX."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.naive.flow import Group, Member
from tests.unit.driver.media_driver.sender.test_flow_control import FIRST, ROW, TAG, Flow
from windtunnel.driver.media_driver.sender import flow_control

PLACES = flow_control.RECEIVERS_MAX
FILLERS = range(1_000_000, 1_000_000 + PLACES)
READER = 7
TIMEOUT = 40
HOLD_MAX = TIMEOUT + TIMEOUT // flow_control.OVERFLOW_PERIODS
"""The longest time that a receiver without an entry holds the limit, up to the idle cycle."""
STATUS_INTERVAL = 2
WINDOW = 64


def full_flow(limit, *, strategy="min", tag=None):
    """Return a group whose entries are all used by receivers with this limit."""
    flow = Flow(strategy, timeout=TIMEOUT)
    for receiver in FILLERS:
        flow.on_status(receiver, limit, WINDOW, tag=tag)
    assert len(flow.members()) == PLACES
    return flow


def set_fillers(flow, limit, time_ns):
    """Set the limit and time of the last status message of each filler."""
    places = flow.receivers[FIRST : FIRST + PLACES]
    chosen = places[places.receiver_id >= FILLERS.start]
    chosen.limit, chosen.last_status_ns = limit, time_ns
    places[places.receiver_id >= FILLERS.start] = chosen


@pytest.mark.parametrize("strategy", ["min", "tagged"])
def test_a_paused_receiver_is_waited_for_when_all_entries_were_used_before(strategy):
    tag = TAG if strategy == "tagged" else None
    flow = full_flow(1000, strategy=strategy, tag=tag)
    for number in range(10 * TIMEOUT // STATUS_INTERVAL):
        set_fillers(flow, 1000 + number * WINDOW, flow.now)
        flow.on_status(FILLERS[0], 1000 + number * WINDOW, WINDOW, tag=tag)
        flow.on_status(READER, 1000, WINDOW, tag=tag)
        flow.idle(STATUS_INTERVAL)
        assert flow.limit == 1000


def test_a_paused_receiver_is_waited_for_when_all_entries_are_used_afterwards():
    flow = Flow(timeout=TIMEOUT)
    flow.on_status(READER, 1000)
    for receiver in FILLERS:
        flow.on_status(receiver, 2000)
    for _ in range(10 * TIMEOUT // STATUS_INTERVAL):
        set_fillers(flow, 2000, flow.now)
        flow.on_status(FILLERS[0], 2000)
        flow.on_status(READER, 1000)
        flow.idle(STATUS_INTERVAL)
        assert flow.limit == 1000
    assert READER in flow.members()


@pytest.mark.parametrize(("silence", "limit"), [(TIMEOUT, 990), (HOLD_MAX + 1, 1000)])
def test_a_silent_receiver_without_an_entry_is_waited_for_until_the_timeout(silence, limit):
    flow = full_flow(1000)
    flow.on_status(READER, 990)
    flow.idle()
    for _ in range(silence):
        set_fillers(flow, 1000, flow.now)
        flow.idle(1)
    assert flow.limit == limit


def test_a_long_time_between_idle_cycles_removes_no_receiver_early():
    flow = full_flow(1000)
    for silence in (100 * TIMEOUT, TIMEOUT):
        flow.now += silence
        set_fillers(flow, 1000, flow.now)
        flow.on_status(READER, 990)
        assert flow.idle(TIMEOUT) == 990


@pytest.mark.parametrize(("limit", "has_backlog"), [(936, True), (935, False)])
def test_a_late_receiver_without_an_entry_is_waited_for_once_it_is_within_a_window(
    limit, has_backlog
):
    flow = full_flow(1000)
    flow.on_status(READER, limit, WINDOW)
    assert flow.idle() == (limit if has_backlog else 1000)


def test_a_receiver_without_an_entry_is_waited_for_when_its_window_shrinks():
    flow = full_flow(1000)
    flow.on_status(READER, 1000, WINDOW)
    for _ in range(3 * HOLD_MAX):
        set_fillers(flow, 1000, flow.now)
        flow.on_status(READER, 1000 - WINDOW + 1, 1)
        flow.idle(1)
        assert flow.limit <= 1000
    assert flow.limit == 1000 - WINDOW + 1


def test_the_window_is_reset_with_the_last_receiver_without_an_entry():
    flow = full_flow(1000)
    flow.on_status(READER, 1000, 10 * WINDOW)
    for _ in range(HOLD_MAX + 1):
        set_fillers(flow, 1000, flow.now)
        flow.idle(1)
    flow.on_status(READER + 1, 1000 - WINDOW - 1, WINDOW)
    assert flow.idle() == 1000


def test_a_receiver_that_leaves_or_lacks_the_tag_does_not_hold_the_limit():
    flow = full_flow(1000, strategy="tagged", tag=TAG)
    flow.on_status(READER, 990, tag=TAG, done=True)
    flow.on_status(READER, 990)
    flow.on_status(READER, 990, tag=TAG + 1)
    assert flow.idle() == 1000


def test_a_receiver_gets_the_first_free_entry():
    flow = full_flow(1000)
    flow.on_status(READER, 990)
    flow.on_status(FILLERS[0], 1000, done=True)
    flow.idle()
    assert READER not in flow.members()
    flow.on_status(READER, 995)
    assert READER in flow.members()
    assert len(flow.members()) == PLACES


def test_a_receiver_without_an_entry_is_waited_for_when_all_others_have_left():
    flow = full_flow(1000)
    flow.on_status(READER, 990)
    set_fillers(flow, 1000, flow.now - TIMEOUT - 1)
    assert flow.idle() == 990
    assert flow.members() == set()
    assert flow.on_status(5, 5000, done=True) == 990
    flow.on_status(READER, 1100)
    assert flow.members() == {READER}
    assert flow.limit == 990
    for _ in range(HOLD_MAX + 1):
        flow.on_status(READER, 1100)
        flow.idle(1)
    assert flow.limit == 1100


def test_the_first_receiver_without_an_entry_ends_the_hold_of_a_setup():
    flow = full_flow(1000)
    flow.elicit_setup()
    flow.setup()
    set_fillers(flow, 2000, flow.now)
    assert flow.on_status(FILLERS[0], 2000) == 1000
    assert flow.on_status(READER, 1500, 500) == 1000
    assert flow.on_status(READER, 1500, 500) == 1500


def test_a_further_receiver_without_an_entry_does_not_end_the_hold_of_a_setup():
    flow = full_flow(1000)
    flow.on_status(READER, 1900, 1000)
    flow.elicit_setup()
    flow.setup()
    set_fillers(flow, 2000, flow.now + 2 * TIMEOUT)
    for _ in range(3):
        assert flow.on_status(READER, 1900, 1000) == 1000
    flow.now += TIMEOUT + 1
    assert flow.on_status(READER, 1900, 1000) == 1900


def test_an_active_group_advances_by_a_window_in_each_hold():
    flow = full_flow(WINDOW)
    readers, holds = range(8), 10
    for _ in range(holds * (HOLD_MAX + 2 * STATUS_INTERVAL) // STATUS_INTERVAL):
        consumed = flow.limit
        set_fillers(flow, consumed + WINDOW, flow.now)
        for reader in readers:
            flow.on_status(reader, consumed + WINDOW, WINDOW)
        flow.idle(STATUS_INTERVAL)
        assert flow.limit <= consumed + WINDOW
    assert flow.limit >= holds * WINDOW


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["status"] * 8 + ["leave", "free", "idle", "idle", "elicit", "setup", "error"]
        ),
        st.integers(1, 4),
        st.integers(0, 4),
        st.integers(1, 4),
        st.integers(0, TIMEOUT // 3),
    ),
    max_size=80,
)
FOREVER = 10**12


@given(steps=STEPS)
@example(steps=[("status", 1, 0, 1, 0), ("idle", 1, 0, 1, 0)])
def test_a_group_without_free_entries_never_exceeds_its_naive_twin(steps):
    """The fillers stay, except for a few that leave; each reader only moves forwards."""
    filled = 256
    flow, twin = Flow(timeout=TIMEOUT), Group(TIMEOUT, 0)
    flow.now = FOREVER
    for receiver in FILLERS:
        flow.on_status(receiver, filled)
        twin.members[receiver] = Member(filled, FOREVER)
    flow.now, twin_limit = 100, flow.limit
    consumed, windows, leavers = Counter(), Counter(), iter(FILLERS)
    for operation, reader, advance, span, delay in steps:
        flow.now += delay
        if operation == "status":
            consumed[reader] += 16 * advance
            windows[reader] = 32 * span
        elif operation == "free":
            reader = next(leavers)
            consumed[reader], windows[reader] = filled, 0
        if operation in ("status", "leave", "free"):
            is_done, window = operation != "status", windows[reader]
            limit = consumed[reader] + window
            flow.on_status(reader, limit, window, done=is_done)
            twin_limit = twin.on_status(flow.now, twin_limit, reader, limit, window, None, is_done)
        elif operation == "idle":
            flow.idle()
            twin_limit = twin.idle(flow.now, twin_limit)
        elif operation == "elicit":
            flow.elicit_setup()
            twin.elicit_setup(None)
        elif operation == "setup":
            flow.setup()
            twin.setup(flow.now, twin_limit)
        else:
            flow.on_error(reader)
            twin.on_error(reader)
        assert flow.limit <= twin_limit
        count = int(flow.flows[ROW].receivers_count)
        assert PLACES - len(steps) <= count <= PLACES
