"""The receivers for whose window the sender of a stream with several receivers waited.

    sent      ....|                   |....      no new frame, although one was due
    limit b   -----------------------------      beyond the next frame
    limit c   ----|                   |----      c is awaited: it left no room for the next frame

A sender waits for the slowest of the receivers that its flow control counts. It goes on when this
receiver has made room, or after the receiver timeout. It waits longer if the status message that
would have made room was lost.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import counted_hosts
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire, status_messages
from windtunnel.harness.verdict.views.stalls.window_limit import shortest_way_back_ns

WAIT_NS_MIN = 10_000_000
"""Shortest wait, and that of a stall."""
Limits = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Times at which a receiver's status messages arrived, and the limit after each of them."""


def awaited_ns(evidence: Evidence, traffic: TrafficCase) -> dict[str, int]:
    """Return for how long a stream's sender waited for the window of each of its receivers.

    Receivers for which it did not wait are left out. Returns an empty dictionary for a stream with
    one receiver or several publishers, and without captures.
    """
    if len(traffic.subscribers) == 1 or len(traffic.publishers) > 1:
        return {}
    wires = {
        host: wire
        for host in counted_hosts(traffic)
        if not isinstance(wire := evidence.wire(traffic.between(traffic.from_host, host)), Missing)
    }
    if not wires or len(wires) < len(counted_hosts(traffic)):
        return {}
    times_ns, needed = _new_frames([each.sent for each in wires.values()])
    limits = {host: _limits(each, each.feedback_arrived) for host, each in wires.items()}
    return waits_ns(times_ns, needed, limits)


def feedback_lost_ns(wire: Wire) -> int:
    """Return how much longer the sender of a stream with one receiver waited for its window because
    status messages were lost that would have made room. One that was only late is not lost.
    """
    sent_ns, sent = _limits(wire, wire.feedback_sent)
    arrived_ns, arrived = _limits(wire, wire.feedback_arrived)
    back_ns = shortest_way_back_ns(wire)
    lost = _lost_limits(wire)
    if back_ns is None or not lost:
        return 0
    total_ns = 0
    for before_ns, after_ns, end in _pauses(*_new_frames([wire.sent])):
        opened = int(np.searchsorted(arrived, end))
        if opened == len(arrived) or _limit_at((arrived_ns, arrived), before_ns) >= end:
            continue
        first = bisect_left(lost, end)
        if first < len(lost) and lost[first] <= arrived[opened]:
            could_ns = int(sent_ns[np.searchsorted(sent, end)]) + back_ns
            waited_ns = min(int(arrived_ns[opened]), after_ns) - max(before_ns, could_ns)
            total_ns += max(0, waited_ns)
    return total_ns


def _lost_limits(wire: Wire) -> list[int]:
    """Return the limits of the status messages that did not arrive, in ascending order."""
    sent, arrived = (
        Counter(_raw_limits(wire, status_messages(feedback)).tolist())
        for feedback in (wire.feedback_sent, wire.feedback_arrived)
    )
    return sorted((sent - arrived).elements())


def waits_ns(
    times_ns: NDArray[np.int64], needed: NDArray[np.int64], limits: Mapping[str, Limits]
) -> dict[str, int]:
    """Return how long the sender waited for each receiver.

    Shapes: times_ns, needed int64[n]: when each new frame was sent, and the limit that it needed
    """
    found: dict[str, int] = {}
    for before_ns, after_ns, end in _pauses(times_ns, needed):
        at_ns = (before_ns + after_ns) // 2
        left = {host: _limit_at(each, at_ns) for host, each in limits.items()}
        host = min(left, key=lambda host: left[host])
        if left[host] < end:
            found[host] = found.get(host, 0) + after_ns - before_ns
    return found


def _pauses(
    times_ns: NDArray[np.int64], needed: NDArray[np.int64]
) -> Iterator[tuple[int, int, int]]:
    """Yield begin and end of each pause between new frames, and the limit needed for the frame that
    ended it.
    """
    for index in np.flatnonzero(np.diff(times_ns) >= WAIT_NS_MIN).tolist():
        yield int(times_ns[index]), int(times_ns[index + 1]), int(needed[index + 1])


def _new_frames(sent: Sequence[FrameSequence]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when each frame was sent for the first time to any receiver, and the limit that it
    needed. A PAD needs room only for its header.
    """
    frames = np.concatenate([each.frames for each in sent])
    starts = np.concatenate([each.starts for each in sent])
    ends = np.concatenate([each.ends for each in sent])
    order = np.argsort(frames["time_ns"], kind="stable")
    _, first = np.unique(starts[order], return_index=True)
    new = order[np.sort(first)]
    is_pad = frames["frame_type"][new] == PAD
    needed = np.where(is_pad, starts[new] + DATA_HEADER_LENGTH, ends[new])
    return frames["time_ns"].astype(np.int64)[new], needed


def _limits(wire: Wire, feedback: Frames) -> Limits:
    """Return the limits that status messages give. They never decrease."""
    messages = status_messages(feedback)
    limits = np.maximum.accumulate(_raw_limits(wire, messages))
    return messages["time_ns"].astype(np.int64), limits


def _raw_limits(wire: Wire, messages: Frames) -> NDArray[np.int64]:
    consumed = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    found: NDArray[np.int64] = consumed + messages["window_bytes"].astype(np.int64)
    return found


def _limit_at(limits: Limits, at_ns: int) -> int:
    """Return the limit at a time. A receiver that has sent no status message is not awaited."""
    index = int(np.searchsorted(limits[0], at_ns, side="right")) - 1
    return int(limits[1][index]) if index >= 0 else int(np.iinfo(np.int64).max)
