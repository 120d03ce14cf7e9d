"""How far the status messages of a group had allowed its sender to go, by Aeron's strategies.

    max      as far as any receiver has allowed
    min      as far as every receiver allows that has joined: the least of their last windows
    tagged   the same among those whose status messages carry the group's tag

A receiver joins with its first status message unless that lies a window behind the others, and
leaves by saying so or by silence. Before a group has its least number nothing may be sent. Where
the driver may be stricter (it holds the limit while a receiver joins, and forgets one only when it
has nothing to send) the bound here is the wider one: what lies beyond it no driver may do.
Source: Aeron's min and tagged multicast flow control.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.dissect.bytes_at import i64_le
from harness.dissect.flow import positions
from harness.dissect.frames import SM_LENGTH, Frames
from harness.dissect.layout import SM_FLAG_END_OF_STREAM, SM_GROUP_TAG
from harness.scenario.flow_control import FlowControl
from harness.verdict.wire import Wire

TAGGED_LENGTH = SM_LENGTH + SM_GROUP_TAG.width
MAX = "max"
TAGGED = "tagged"


@dataclass
class _Receiver:
    limit: int
    """The furthest that it has allowed."""
    told: int
    """What it allowed last: a shrunken window lets others join from further behind."""
    time_ns: int
    is_done: bool


def binding(wire: Wire, told: Frames, control: FlowControl) -> Frames:
    """The status messages that a strategy heeds."""
    if control.strategy != TAGGED:
        return told
    wanted = [_tag(wire, row) == control.group_tag for row in told]
    picked: Frames = told[np.array(wanted, dtype=np.bool_)]
    return picked


def _tag(wire: Wire, row: np.void) -> int | None:
    """The group tag of a status message; None without one."""
    if int(row["frame_length"]) < TAGGED_LENGTH:
        return None
    return int(i64_le(wire.sender_buf, int(row["at"]) + SM_GROUP_TAG.offset))


def allowed(
    wire: Wire, told: Frames, control: FlowControl, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How far the sender might go from which time on: (times, positions), both rising.

    `told` are the status messages that count, in order of time; `start` is where the stream begins.
    """
    times_ns = told["time_ns"].astype(np.int64)
    at = positions(told, wire.facts.initial_term_id, wire.facts.term_length)
    limits = at + told["window_bytes"]
    if control.strategy == MAX:
        return times_ns, np.maximum.accumulate(limits) if len(limits) else limits
    group: dict[int, _Receiver] = {}
    reached = start
    found = []
    done = (told["flags"] & SM_FLAG_END_OF_STREAM) != 0
    rows = zip(
        times_ns.tolist(),
        limits.tolist(),
        told["window_bytes"].tolist(),
        told["receiver_id"].tolist(),
        done.tolist(),
        strict=True,
    )
    for time_ns, limit, window, name, is_done in rows:
        for gone in [
            key
            for key, each in group.items()
            if each.is_done or each.time_ns + control.timeout_ns < time_ns
        ]:
            del group[gone]
        least = min((each.told for each in group.values()), default=limit)
        if name in group:
            group[name] = _Receiver(max(limit, group[name].limit), limit, time_ns, is_done)
        elif not is_done and limit >= least - window:
            group[name] = _Receiver(limit, limit, time_ns, False)
        if group and len(group) >= control.group_min:
            reached = max(reached, min(each.limit for each in group.values()))
        elif not group and not control.group_min:
            reached = max(reached, limit)
        found.append(reached)
    return times_ns, np.array(found, dtype=np.int64)
