"""Limits of a group's status messages: by hand for each strategy, never below a driver's."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windtunnel.driver.media_driver.sender import flow_control as driver_flow
from windtunnel.harness.dissect.frames.flow import StreamFacts
from windtunnel.harness.dissect.frames.frames import FRAME
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM
from windtunnel.harness.scenario.schema.flow_control import FlowControl, parse_flow_control
from windtunnel.harness.verdict.checks.flow_control.group_window import allowed, limiting_messages

FACTS = StreamFacts(session_id=1, stream_id=2, initial_term_id=0, term_length=65536, mtu=1408)
S = 1_000_000_000


class Wire:
    """The parts of a Wire that the window uses."""

    facts = FACTS

    def __init__(self, buf=b"", sent=()):
        """Create a wire on which data was sent: (time, end position)."""
        self.sender_buf = np.frombuffer(buf or b"\0", dtype=np.uint8)
        frames = np.zeros(len(sent), dtype=FRAME)
        frames["time_ns"] = [time_ns for time_ns, _ in sent]
        self.sent = SimpleNamespace(frames=frames, ends=np.array([end for _, end in sent], "i8"))


def status_messages(*rows):
    """Return status messages from (time, receiver, position, window, is last)."""
    frames = np.zeros(len(rows), dtype=FRAME)
    for frame, (time_ns, receiver, position, window, *done) in zip(frames, rows, strict=True):
        frame["time_ns"], frame["receiver_id"] = time_ns, receiver
        frame["term_id"], frame["term_offset"] = divmod(position, 65536)
        frame["window_bytes"] = window
        frame["flags"] = SM_FLAG_END_OF_STREAM if done and done[0] else 0
    return frames


def limits(control, *rows, sent=()):
    """Return the sender's limit after each of the messages."""
    wire = Wire(sent=sent)
    times_ns, found = allowed(wire, status_messages(*rows), parse_flow_control(control), 0)
    assert np.all(np.diff(times_ns) >= 0)
    assert np.all(np.diff(found) >= 0)
    wanted = [row[0] for row in rows]
    return found[np.searchsorted(times_ns, wanted, side="right") - 1].tolist()


def test_max_follows_the_fastest():
    assert limits("max", (1, 1, 0, 100), (2, 2, 0, 50), (3, 2, 96, 50)) == [100, 100, 146]


def test_min_follows_the_slowest():
    rows = (1, 1, 0, 96), (2, 2, 0, 64), (3, 1, 320, 96), (4, 2, 96, 64)
    assert limits("min", *rows) == [96, 96, 96, 160]


@pytest.mark.parametrize(
    ("sent", "limit"),
    [((), 73_728), ([(2, 49_152)], 73_728), ([(2, 49_184)], 90_112), ([(S, 49_184)], 73_728)],
)
def test_a_receiver_half_a_term_behind_the_sender_may_not_have_joined(sent, limit):
    # The limit of receiver 2 is 57,344, below that of receiver 1 (73,728, then 90,112).
    rows = (1, 1, 32_768, 40_960), (3, 2, 16_384, 40_960), (4, 1, 49_152, 40_960)
    assert limits("min", *rows, sent=sent) == [73_728, 73_728, limit]


def test_a_group_sends_nothing_before_it_is_complete():
    assert limits("min,g:/2", (1, 1, 0, 96), (2, 1, 0, 96), (3, 2, 0, 64)) == [0, 0, 64]


def test_a_silent_receiver_expires():
    rows = (1, 1, 0, 96), (2, 2, 0, 96), (5 * S, 1, 640, 96), (7 * S, 1, 1280, 96)
    assert limits("min", *rows) == [96, 96, 96, 1376]
    assert limits("min,t:8s", *rows) == [96, 96, 96, 96]


def test_a_silent_receiver_stops_limiting_the_sender_after_its_timeout():
    control = parse_flow_control("min")
    rows = (0, 1, 0, 96), (0, 2, 0, 96), (S, 1, 640, 96), (6 * S, 2, 32, 96)
    times_ns, found = allowed(Wire(), status_messages(*rows), control, 0)
    at = {int(time): int(limit) for time, limit in zip(times_ns, found, strict=True)}
    assert at[5 * S] == 736


def test_a_narrower_window_lets_another_receiver_join():
    assert limits("min,g:/2", (1, 1, 0, 320), (2, 1, 0, 96), (3, 2, 0, 96)) == [0, 0, 96]


def test_a_receiver_that_leaves_no_longer_limits_the_sender():
    rows = (1, 1, 0, 96), (2, 2, 0, 96), (3, 2, 32, 96, True), (4, 1, 640, 96)
    assert limits("min", *rows) == [96, 96, 96, 736]


def test_a_receiver_far_behind_does_not_join():
    rows = (1, 1, 6400, 96), (2, 2, 0, 96), (3, 1, 12800, 96)
    assert limits("min", *rows) == [6496, 6496, 12896]


def test_only_tagged_messages_limit_a_tagged_group():
    tag = (7).to_bytes(8, "little", signed=True)
    other = (-7).to_bytes(8, "little", signed=True)
    buf = bytes(36) + tag + bytes(36) + other + bytes(36)
    frames = status_messages((1, 1, 0, 96), (2, 2, 0, 96), (3, 3, 0, 96))
    frames["at"], frames["frame_length"] = (0, 44, 88), (44, 44, 36)
    assert limiting_messages(Wire(buf), frames, FlowControl("tagged", 7))[
        "receiver_id"
    ].tolist() == [1]
    assert len(limiting_messages(Wire(buf), frames, FlowControl("min"))) == 3


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(1, 4), st.booleans()),
        max_size=30,
    ),
    st.integers(0, 3),
)
@example(moves=[(1, 0, 3, False), (1, 0, 1, False), (2, 0, 1, False)], least=2)
def test_the_bound_is_never_below_the_limit_of_the_driver(moves, least):
    """The judge's bound is at or above the limit of our own driver's strategy."""
    rows, where = [], {1: 0, 2: 0, 3: 0}
    for at, (receiver, step, window, is_done) in enumerate(moves):
        where[receiver] += 32 * step
        rows.append((at * S, receiver, where[receiver], 320 * window, is_done and step == 0))
    bound = limits(f"min,g:/{least}", *rows) if rows else []
    flows, receivers = driver_flow.make_flows(1), driver_flow.make_flow_receivers(1)
    flows.strategy, flows.receiver_timeout_ns, flows.group_min_size = driver_flow.MIN, 5 * S, least
    limit = highest = 0
    values = np.zeros(1024, dtype=np.uint8)
    for (time_ns, receiver, position, window, is_done), allows in zip(rows, bound, strict=True):
        limit = driver_flow.on_idle(flows, receivers, 0, values, limit, time_ns)
        message = limit, position, window, receiver, is_done, False, 0, time_ns
        limit = driver_flow.on_status(flows, receivers, 0, values, *message)
        highest = max(highest, limit)
        assert highest <= allows
