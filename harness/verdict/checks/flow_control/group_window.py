"""How far the status messages of a group had allowed its sender to go, by Aeron's strategies.

    max      as far as any receiver has allowed
    min      as far as every receiver allows that has joined: the least of their last windows
    tagged   the same among those whose status messages carry the group's tag

A receiver joins with its first status message unless that lies a window behind the others, and
leaves by saying so or by silence. Before a group has its least number nothing may be sent. Where
the driver may be stricter (it holds the limit while a receiver joins, and forgets one only when it
has nothing to send) the bound here is the wider one: what lies beyond it no driver may do. So who
may have joined counts for the least number, and only who surely has binds.
Source: Aeron's min and tagged multicast flow control.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.bytes_at import i64_le
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import SM_LENGTH, Frames
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM, SM_GROUP_TAG
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.series import END_OF_TIME_NS

TAGGED_LENGTH = SM_LENGTH + SM_GROUP_TAG.width
MAX = "max"
TAGGED = "tagged"


@dataclass
class _Receiver:
    limit: int
    time_ns: int


class _Group:
    """Who surely binds the sender, and how far it might have gone so far."""

    def __init__(self, control: FlowControl, start: int) -> None:
        self._control = control
        self._joined: dict[int, _Receiver] = {}
        self._seen: set[int] = set()
        self.reached = start
        self.times_ns: list[int] = []
        self.limits: list[int] = []

    def hear(self, time_ns: int, name: int, limit: int, window: int, is_done: bool) -> None:
        """Take note of a status message, and before it of those whose time was over."""
        self.forget_until(time_ns)
        least = min((each.limit for each in self._joined.values()), default=limit)
        if is_done:
            self._joined.pop(name, None)
        else:
            self._seen.add(name)
            if name in self._joined or limit >= least - window:
                self._joined[name] = _Receiver(limit, time_ns)
        if not self._joined and len(self._seen) >= self._control.group_min:
            self.reached = max(self.reached, limit)
        self._note(time_ns)

    def forget_until(self, time_ns: int) -> None:
        """Forget who was silent for too long, each at its time."""
        over = {
            name: each.time_ns + self._control.timeout_ns for name, each in self._joined.items()
        }
        for name in sorted(over, key=lambda each: over[each]):
            if over[name] < time_ns:
                del self._joined[name]
                self._note(over[name])

    def _note(self, time_ns: int) -> None:
        if self._joined and len(self._seen) >= self._control.group_min:
            least = min(each.limit for each in self._joined.values())
            self.reached = max(self.reached, least)
        self.times_ns.append(time_ns)
        self.limits.append(self.reached)


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
    group = _Group(control, start)
    done = (told["flags"] & SM_FLAG_END_OF_STREAM) != 0
    columns = (times_ns, told["receiver_id"], limits, told["window_bytes"], done)
    for row in zip(*(each.tolist() for each in columns), strict=True):
        group.hear(*row)
    group.forget_until(END_OF_TIME_NS)
    return np.array(group.times_ns, dtype=np.int64), np.array(group.limits, dtype=np.int64)
