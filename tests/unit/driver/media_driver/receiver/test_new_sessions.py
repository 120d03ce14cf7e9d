"""Decisions about SETUPs of sessions without an image, compared with a naive implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import new_sessions as naive
from windtunnel.driver.media import stream_map
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.receiver import new_sessions, session_state
from windtunnel.driver.media_driver.receiver.receiver_state import make_receiver_state

MS = 1_000_000
START_NS = 10_000 * MS
STREAMS = ((0, 1), (0, 2), (1, 1))
# Times around the limits of the levels and of the restrictions.
PAUSES = st.sampled_from([0, 1, 25 * MS, 50 * MS - 1, 50 * MS, 100 * MS, 500 * MS, 500 * MS + 1])
OPERATIONS = ["setup"] * 5 + ["answer", "restrict", "lift"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(OPERATIONS),
        st.sampled_from(STREAMS),
        st.integers(1, 4),
        PAUSES,
    ),
    max_size=60,
)


@pytest.fixture(scope="module")
def made():
    return make_state()


def make_state(**sizes):
    values = np.zeros(1 << 16, np.uint8)
    state = make_receiver_state(
        values, duty_cycle.make_duty_cycle(0, 1, 1 << 40), images=4, endpoints=4, **sizes
    )
    for endpoint, stream_id in STREAMS:
        session_state.add_interest(state, endpoint, stream_id, 0, 0)
    return state


@given(steps=STEPS)
def test_agrees_with_the_reference_implementation(made, steps):
    made.refused[:] = 0
    for stream in STREAMS:
        new_sessions.lift(made, *stream)
    expected, now_ns = naive.NewSessions(), START_NS
    for operation, stream, session, pause_ns in steps:
        now_ns += pause_ns
        if operation == "restrict":
            level, until_ns = session - 2, now_ns + 1_500 * MS
            new_sessions.restrict(made, *stream, level, until_ns)
            expected.restrict(stream, level, until_ns)
        elif operation == "lift":
            new_sessions.lift(made, *stream)
            expected.lift(stream)
        else:
            is_answer = operation == "answer"
            found = new_sessions.admit(made, *stream, session, int(is_answer), now_ns)
            assert found == expected.admit(stream, session, is_answer, now_ns)


def test_another_session_with_the_same_entry_only_delays_a_session():
    state = make_state()
    size = state.refused.size
    entry = stream_map.home(size, 0, 1, 7)
    other = next(n for n in range(8, 1 << 20) if stream_map.home(size, 0, 1, n) == entry)
    new_sessions.restrict(state, 0, 1, new_sessions.FIRST, START_NS + 10_000 * MS)
    found = [
        new_sessions.admit(state, 0, 1, session, 0, START_NS + time_ns)
        for time_ns, session in ((0, 7), (1, other), (100 * MS, 7), (200 * MS, 7))
    ]
    assert found == [new_sessions.REFUSED] * 3 + [new_sessions.REPEATED]


def test_a_session_that_repeats_its_setup_incessantly_is_accepted_once_per_second():
    state = make_state()
    new_sessions.restrict(state, 0, 1, new_sessions.REPEATED, START_NS + 10_000 * MS)
    found = [new_sessions.admit(state, 0, 1, 7, 0, START_NS + n * MS) for n in range(3_001)]
    assert [n for n, level in enumerate(found) if level != new_sessions.REFUSED] == [
        1_000, 2_000, 3_000,
    ]  # fmt: skip


def test_a_stream_without_subscriptions_is_not_restricted():
    state = make_state()
    session_state.remove_interest(state, 0, 1, 0, 0)
    new_sessions.restrict(state, 0, 1, new_sessions.REPEATED, START_NS + MS)
    assert stream_map.count(state.restrictions) == 0


@pytest.mark.parametrize("removes_endpoint", [False, True])
def test_restrictions_end_with_the_last_subscription(removes_endpoint):
    state = make_state()
    new_sessions.restrict(state, 0, 1, new_sessions.REPEATED, START_NS + MS)
    new_sessions.restrict(state, 1, 1, new_sessions.REPEATED, START_NS + MS)
    if removes_endpoint:
        session_state.remove_endpoint(state, 0)
    else:
        session_state.remove_interest(state, 0, 1, 0, 0)
    assert stream_map.count(state.restrictions) == 2
    assert new_sessions.admit(state, 1, 1, 7, 1, START_NS) == new_sessions.REFUSED


@pytest.mark.full
def test_most_sessions_are_still_remembered_after_a_thousand_forged_setups():
    state = make_state()
    new_sessions.restrict(state, 0, 1, new_sessions.FIRST, START_NS + 10_000 * MS)
    sessions = [int(n) for n in np.random.default_rng(5).integers(1, 1 << 31, 1_100)]
    honest = sessions[:100]
    for session in sessions:
        new_sessions.admit(state, 0, 1, session, 0, START_NS)
    found = [new_sessions.admit(state, 0, 1, each, 0, START_NS + 100 * MS) for each in honest]
    assert found.count(new_sessions.REPEATED) > 90
