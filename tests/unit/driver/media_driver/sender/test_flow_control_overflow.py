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
"""The longest that a limit of a receiver without a place is held, up to the next idle turn."""
STATUS_INTERVAL = 2
WINDOW = 64


def full_flow(limit, *, strategy="min", tag=None):
    """A group of which all places are taken by receivers with this limit."""
    flow = Flow(strategy, timeout=TIMEOUT)
    for receiver in FILLERS:
        flow.on_status(receiver, limit, WINDOW, tag=tag)
    assert len(flow.members()) == PLACES
    return flow


def set_fillers(flow, limit, heard):
    """As if each filler had reported this limit at this time."""
    places = flow.receivers[FIRST : FIRST + PLACES]
    chosen = places[places.receiver_id >= FILLERS.start]
    chosen.limit, chosen.last_status_ns = limit, heard
    places[places.receiver_id >= FILLERS.start] = chosen


@pytest.mark.parametrize("strategy", ["min", "tagged"])
def test_a_paused_receiver_is_waited_for_when_all_places_were_taken_before_it(strategy):
    tag = TAG if strategy == "tagged" else None
    flow = full_flow(1000, strategy=strategy, tag=tag)
    for number in range(10 * TIMEOUT // STATUS_INTERVAL):
        set_fillers(flow, 1000 + number * WINDOW, flow.now)
        flow.on_status(FILLERS[0], 1000 + number * WINDOW, WINDOW, tag=tag)
        flow.on_status(READER, 1000, WINDOW, tag=tag)
        flow.idle(STATUS_INTERVAL)
        assert flow.limit == 1000


def test_a_paused_receiver_is_waited_for_when_all_places_are_taken_after_it():
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
def test_a_silent_receiver_without_a_place_is_waited_for_until_the_timeout(silence, limit):
    flow = full_flow(1000)
    flow.on_status(READER, 990)
    flow.idle()
    for _ in range(silence):
        set_fillers(flow, 1000, flow.now)
        flow.idle(1)
    assert flow.limit == limit


def test_one_long_wait_between_idle_turns_forgets_no_receiver_early():
    flow = full_flow(1000)
    for silence in (100 * TIMEOUT, TIMEOUT):
        flow.now += silence
        set_fillers(flow, 1000, flow.now)
        flow.on_status(READER, 990)
        assert flow.idle(TIMEOUT) == 990


@pytest.mark.parametrize(("limit", "has_backlog"), [(936, True), (935, False)])
def test_a_late_receiver_without_a_place_is_waited_for_once_it_is_within_a_window(
    limit, has_backlog
):
    flow = full_flow(1000)
    flow.on_status(READER, limit, WINDOW)
    assert flow.idle() == (limit if has_backlog else 1000)


def test_a_receiver_without_a_place_is_waited_for_when_its_window_shrinks():
    flow = full_flow(1000)
    flow.on_status(READER, 1000, WINDOW)
    for _ in range(3 * HOLD_MAX):
        set_fillers(flow, 1000, flow.now)
        flow.on_status(READER, 1000 - WINDOW + 1, 1)
        flow.idle(1)
        assert flow.limit <= 1000
    assert flow.limit == 1000 - WINDOW + 1


def test_a_window_is_forgotten_with_the_last_receiver_without_a_place():
    flow = full_flow(1000)
    flow.on_status(READER, 1000, 10 * WINDOW)
    for _ in range(HOLD_MAX + 1):
        set_fillers(flow, 1000, flow.now)
        flow.idle(1)
    flow.on_status(READER + 1, 1000 - WINDOW - 1, WINDOW)
    assert flow.idle() == 1000


def test_a_receiver_that_leaves_or_lacks_the_tag_holds_nobody_without_a_place():
    flow = full_flow(1000, strategy="tagged", tag=TAG)
    flow.on_status(READER, 990, tag=TAG, done=True)
    flow.on_status(READER, 990)
    flow.on_status(READER, 990, tag=TAG + 1)
    assert flow.idle() == 1000


def test_a_receiver_gets_the_first_place_that_is_free():
    flow = full_flow(1000)
    flow.on_status(READER, 990)
    flow.on_status(FILLERS[0], 1000, done=True)
    flow.idle()
    assert READER not in flow.members()
    flow.on_status(READER, 995)
    assert READER in flow.members()
    assert len(flow.members()) == PLACES


def test_a_receiver_without_a_place_is_waited_for_when_all_others_have_left():
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


def test_the_first_receiver_without_a_place_ends_the_hold_of_a_setup():
    flow = full_flow(1000)
    flow.want_setup()
    flow.setup()
    set_fillers(flow, 2000, flow.now)
    assert flow.on_status(FILLERS[0], 2000) == 1000
    assert flow.on_status(READER, 1500, 500) == 1000
    assert flow.on_status(READER, 1500, 500) == 1500


def test_a_further_receiver_without_a_place_leaves_the_hold_of_a_setup_to_its_timeout():
    flow = full_flow(1000)
    flow.on_status(READER, 1900, 1000)
    flow.want_setup()
    flow.setup()
    set_fillers(flow, 2000, flow.now + 2 * TIMEOUT)
    for _ in range(3):
        assert flow.on_status(READER, 1900, 1000) == 1000
    flow.now += TIMEOUT + 1
    assert flow.on_status(READER, 1900, 1000) == 1900


def test_a_group_that_reads_moves_on_by_a_window_in_each_hold():
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
            ["status"] * 8 + ["leave", "free", "idle", "idle", "want", "setup", "refuse"]
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
def test_a_group_without_free_places_never_goes_further_than_its_naive_twin(steps):
    """The fillers stay, but for a few that give up their place; each reader moves only forwards."""
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
            twin_limit = twin.hear(flow.now, twin_limit, reader, limit, window, None, is_done)
        elif operation == "idle":
            flow.idle()
            twin_limit = twin.idle(flow.now, twin_limit)
        elif operation == "want":
            flow.want_setup()
            twin.want_setup(None)
        elif operation == "setup":
            flow.setup()
            twin.setup(flow.now, twin_limit)
        else:
            flow.refuse(reader)
            twin.refuse(reader)
        assert flow.limit <= twin_limit
        count = int(flow.flows[ROW].receivers_count)
        assert PLACES - len(steps) <= count <= PLACES
