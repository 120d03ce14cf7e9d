"""The kernel that follows a stream agrees with a naive one that stores the state of every word."""

import time

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tests.naive import repair as naive
from windtunnel.reports.analysis.kernels import gap_kernel
from windtunnel.reports.analysis.kernels import repair_kernel as kernel
from windtunnel.reports.analysis.kernels.frame_outcome_kernel import EVENT_OUTCOME, FLOW, NO_OUTCOME
from windtunnel.reports.analysis.streams.repair import gap_row
from windtunnel.reports.analysis.streams.repair_tables import FRAME_OUTCOME_NAMES, GAP_CAUSES
from windtunnel.reports.analysis.streams.sending_order import UNKNOWN

KINDS = {"frame": kernel.FRAME, "heartbeat": kernel.HEARTBEAT, "nak": kernel.NAK}
KINDS["status"] = kernel.STATUS


def follow(
    events, flows=None, pieces_max=1_000, reach_bytes=1 << 30, at_once=1 << 30, counts_new=False,
    sent=None, gaps_max=None,
):  # fmt: skip
    """Return (outcomes of frames, rows of gaps, flow states, control) of events.

    All events are of flow 0 unless `flows` is given. With `counts_new` also return how many frames
    were new, and the extent of each.
    """
    states = np.zeros(3, dtype=FLOW)
    rows = (gaps_max or len(events)) + 1
    # The kernel writes the fields of a gap before it reads them.
    gaps = np.full(rows * gap_kernel.GAP.itemsize // 8, -1, dtype=np.int64).view(gap_kernel.GAP)
    pieces = np.zeros(pieces_max, dtype=gap_kernel.PIECE)
    control = np.zeros(gap_kernel.CONTROL_LENGTH, dtype=np.int64)
    names, extents, new_count = [], [], 0
    for first in range(0, len(events), at_once):
        part = events[first : first + at_once]
        order = (sent or [(None, False, None)] * len(events))[first : first + at_once]
        results = np.zeros(len(part), dtype=EVENT_OUTCOME)
        kernel.follow(
            np.array([each[1] for each in part], dtype=np.int64),
            np.array([KINDS[each[0]] for each in part], dtype=np.uint8),
            np.array((flows or [0] * len(events))[first : first + at_once], dtype=np.int32),
            np.array([each[2] for each in part], dtype=np.int64),
            np.array([each[3] for each in part], dtype=np.int64),
            np.array([each[0] or UNKNOWN for each in order], dtype=np.int64),
            np.array([each[1] for each in order], dtype=np.bool_),
            np.array([each[2] or 0 for each in order], dtype=np.int64),
            reach_bytes,
            results,
            states,
            gaps,
            pieces,
            control,
        )
        new_count += int(results["is_new"].sum())
        names += [FRAME_OUTCOME_NAMES[code] for code in results["outcome"] if code != NO_OUTCOME]
        extents += results["extent"][results["outcome"] != NO_OUTCOME].tolist()
    rows = []
    for gap in gaps[: control[gap_kernel.GAPS]]:
        outcome = gap_row(gap)["outcome"]
        cause = GAP_CAUSES[gap["cause"]]
        naks, opened_ns = int(gap["nak_count"]), int(gap["opened_ns"])
        rows.append((int(gap["start"]), int(gap["end"]), cause, naks, outcome, opened_ns))
    found = names, rows, states, control
    return (*found, new_count, extents) if counts_new else found


WORDS = st.integers(0, 24)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["frame", "frame", "frame", "frame", "nak", "nak", "heartbeat", "status"]),
        WORDS,
        st.integers(0, 5),
    ),
    max_size=40,
)


def timed(raw):
    """Make events of random words, a microsecond apart, at positions that are multiples of 32."""
    events = []
    for index, (kind, start, length) in enumerate(raw):
        length = max(length, 1) if kind == "frame" else 0 if kind != "nak" else length
        end = start + length
        events.append((kind, 1_000 * (index + 1), start * 32, end * 32))
    return events


@given(EVENTS)
def test_agrees_with_the_naive_twin(raw):
    events = timed(raw)
    names, rows, _, control, new_count, extents = follow(events, counts_new=True)
    assert (names, rows, new_count, extents) == naive.follow(events)
    assert control[gap_kernel.PIECES_OVERFLOWED] == 0


SENT = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1, 12)), st.integers(0, 9), st.integers(1, 3)),
    min_size=40, max_size=40,
)  # fmt: skip
"""When each of the events was sent, if that is known, and in which packet. Most are trusted."""


def sending_of(events, raw):
    """Return (sending order, whether it is trusted, packet) for each event."""
    return [
        (order, doubt > 0, packet)
        if order is not None and event[0] in ("frame", "heartbeat")
        else (None, False, None)
        for event, (order, doubt, packet) in zip(events, raw, strict=False)
    ]


@example(
    [("frame", 0, 1), ("frame", 0, 1), ("frame", 1, 1)],
    [(1, 1, 1), (5, 0, 2), (3, 1, 3)],
)
@given(EVENTS, SENT)
def test_agrees_with_the_naive_twin_where_the_order_of_sending_is_known(raw, sending):
    events = timed(raw)
    sent = sending_of(events, sending)
    names, rows, _, _, new_count, extents = follow(events, counts_new=True, sent=sent)
    assert (names, rows, new_count, extents) == naive.follow(events, sent)


@given(EVENTS, SENT, st.integers(1, 5))
def test_calls_of_any_length_give_the_same_result(raw, sending, at_once):
    events = timed(raw)
    sent = sending_of(events, sending)
    names, rows, states, _ = follow(events, sent=sent)
    again = follow(events, at_once=at_once, sent=sent)
    assert (names, rows, states.tobytes()) == (*again[:2], again[2].tobytes())


@given(EVENTS, SENT)
def test_flows_are_independent(raw, sending):
    events = timed(raw)
    sent = sending_of(events, sending)
    _, rows, alone, _ = follow(events, sent=sent)
    doubled = [event for event in events for _ in range(2)]
    flows = [index % 2 for index in range(len(doubled))]
    _, both_rows, states, _ = follow(doubled, flows=flows, sent=[s for s in sent for _ in range(2)])
    assert states[0].tobytes() == states[1].tobytes() == alone[0].tobytes()
    assert sorted(both_rows) == sorted(rows + rows)


def test_discards_pieces_out_of_reach_and_counts_overflows():
    holes = [("frame", each, 64 * each, 64 * each + 32) for each in range(1, 10_000)]
    _, rows, _, control = follow(holes, pieces_max=5_000, reach_bytes=64_000)
    assert control[gap_kernel.PIECES] <= gap_kernel.PIECES_BEFORE_CLEANUP
    assert control[gap_kernel.PIECES_OVERFLOWED] == 0
    assert len(rows) == 9_998
    _, _, _, control = follow(holes, pieces_max=100)
    assert control[gap_kernel.PIECES_OVERFLOWED] == 9_998 - 100


@given(EVENTS, st.integers(1, 10))
def test_gaps_for_which_there_is_no_room_are_counted(raw, gaps_max):
    events = timed(raw)
    _, all_rows, _, _ = follow(events)
    _, rows, _, control = follow(events, gaps_max=gaps_max)
    assert len(rows) == min(gaps_max, len(all_rows))
    assert (control[gap_kernel.GAPS_OVERFLOWED] > 0) == (len(all_rows) > gaps_max)
    if len(all_rows) <= gaps_max:
        assert rows == all_rows


def test_time_per_gap_is_independent_of_the_number_of_open_gaps():
    used_s = []
    for count in (8_000, 60_000):
        numbers = np.arange(count, dtype=np.int64)
        none, truths = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        outcomes = np.zeros(count, dtype=EVENT_OUTCOME)
        durations_s = []
        for _ in range(4):
            gaps = np.zeros(count + 1, dtype=gap_kernel.GAP)
            pieces = np.zeros(count, dtype=gap_kernel.PIECE)
            states = np.zeros(1, dtype=FLOW)
            control = np.zeros(gap_kernel.CONTROL_LENGTH, dtype=np.int64)
            began_s = time.process_time()
            kernel.follow(
                numbers, np.full(count, kernel.FRAME, dtype=np.uint8), none.astype(np.int32),
                64 * numbers, 64 * numbers + 32, np.full(count, UNKNOWN), truths, none, 1 << 30,
                outcomes, states, gaps, pieces, control,
            )  # fmt: skip
            durations_s.append(time.process_time() - began_s)
        assert control[gap_kernel.PIECES] == count - 1
        used_s.append(min(durations_s) / count)
    assert used_s[1] < 4 * used_s[0]
