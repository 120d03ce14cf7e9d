"""The receivers for whose window the sender of a stream with several receivers waited.

    sent      ....|                   |....      no new frame, although one was due
    limit b   -----------------------------      beyond the next frame
    limit c   ----|                   |----      c is awaited: it left no room for the next frame

A sender waits for the slowest of the receivers that its flow control counts. It goes on when this
receiver has made room, or after the receiver timeout.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.resolved.unawaited import counted_hosts
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import Wire, status_messages

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
    frames = np.concatenate([each.sent.frames for each in wires.values()])
    starts = np.concatenate([each.sent.starts for each in wires.values()])
    ends = np.concatenate([each.sent.ends for each in wires.values()])
    order = np.argsort(frames["time_ns"], kind="stable")
    _, first = np.unique(starts[order], return_index=True)
    new = order[np.sort(first)]
    is_pad = frames["frame_type"][new] == PAD
    needed = np.where(is_pad, starts[new] + DATA_HEADER_LENGTH, ends[new])
    limits = {host: _limits(each) for host, each in wires.items()}
    return waits_ns(frames["time_ns"].astype(np.int64)[new], needed, limits)


def waits_ns(
    times_ns: NDArray[np.int64], needed: NDArray[np.int64], limits: Mapping[str, Limits]
) -> dict[str, int]:
    """Return how long the sender waited for each receiver.

    Shapes: times_ns, needed int64[n]: when each new frame was sent, and the limit that it needed
    """
    found: dict[str, int] = {}
    for index in np.flatnonzero(np.diff(times_ns) >= WAIT_NS_MIN).tolist():
        before_ns, after_ns = int(times_ns[index]), int(times_ns[index + 1])
        at_ns = (before_ns + after_ns) // 2
        left = {host: _limit_at(each, at_ns) for host, each in limits.items()}
        host = min(left, key=lambda host: left[host])
        if left[host] < needed[index + 1]:
            found[host] = found.get(host, 0) + after_ns - before_ns
    return found


def _limits(wire: Wire) -> Limits:
    messages = status_messages(wire.feedback_arrived)
    consumed = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    limits = np.maximum.accumulate(consumed + messages["window_bytes"].astype(np.int64))
    return messages["time_ns"].astype(np.int64), limits


def _limit_at(limits: Limits, at_ns: int) -> int:
    """Return the limit at a time. A receiver that has sent no status message is not awaited."""
    index = int(np.searchsorted(limits[0], at_ns, side="right")) - 1
    return int(limits[1][index]) if index >= 0 else int(np.iinfo(np.int64).max)
