"""Sender limits for a group of receivers under Aeron's flow control strategies.

    max      the highest limit of any receiver
    min      the lowest of the last limits of all receivers that have joined
    tagged   the same, but only for receivers whose status messages carry the group's tag

A receiver joins with its first status message, unless that is a window behind the others or half a
term behind the sender, and leaves with an end-of-stream flag or by timeout. Nothing may be sent
before a group has its minimum size. A driver may be stricter: it holds the limit while a receiver
joins, and removes a receiver only when it has nothing to send. The limit computed here is the wider
one, which no driver may exceed. So a receiver that may have joined counts for the minimum size, but
only a receiver that has certainly joined limits the sender.
Source: Aeron's min and tagged multicast flow control.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.dissect.frames.bytes_at import i64_le
from windtunnel.harness.dissect.frames.flow import positions
from windtunnel.harness.dissect.frames.frames import SM_LENGTH, Frames
from windtunnel.harness.dissect.frames.layout import SM_FLAG_END_OF_STREAM, SM_GROUP_TAG
from windtunnel.harness.dissect.frames.observed_flows import END_OF_TIME_NS
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.series import highest_sent_at

READ_WITHIN_NS = 10_000_000
"""Time within which a driver reads a status message. It may send data before."""
TAGGED_LENGTH = SM_LENGTH + SM_GROUP_TAG.width
MAX = "max"
TAGGED = "tagged"


@dataclass
class _Receiver:
    limit: int
    time_ns: int


class _Group:
    """The known members of the receiver group that limits a sender, and the sender's highest limit
    so far.
    """

    def __init__(self, control: FlowControl, start: int) -> None:
        self._control = control
        self._joined: dict[int, _Receiver] = {}
        self._seen: set[int] = set()
        self.reached = start
        self.joined_most = 0
        self.times_ns: list[int] = []
        self.limits: list[int] = []

    def on_status_message(
        self, time_ns: int, name: int, limit: int, window: int, is_done: bool, near: int
    ) -> None:
        """Remove the receivers that timed out before a status message, then process the message.
        A driver rejects it if the sender is beyond `near`.
        """
        self.expire_until(time_ns)
        least = min((each.limit for each in self._joined.values()), default=limit)
        if is_done:
            self._joined.pop(name, None)
        else:
            self._seen.add(name)
            is_certain = limit >= least - window and self.reached <= near
            if name in self._joined or is_certain:
                self._joined[name] = _Receiver(limit, time_ns)
        self.joined_most = max(self.joined_most, len(self._joined))
        if not self._joined and len(self._seen) >= self._control.group_min:
            self.reached = max(self.reached, limit)
        self._note(time_ns)

    def expire_until(self, time_ns: int) -> None:
        """Remove the receivers that timed out before a time, in order of their timeouts."""
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


def limiting_messages(wire: Wire, messages: Frames, control: FlowControl) -> Frames:
    """Return the status messages that a flow control strategy takes into account."""
    if control.strategy != TAGGED:
        return messages
    selected = [_tag(wire, row) == control.group_tag for row in messages]
    picked: Frames = messages[np.array(selected, dtype=np.bool_)]
    return picked


def _tag(wire: Wire, row: np.void) -> int | None:
    """Return the group tag of a status message, or None if it has none."""
    if int(row["frame_length"]) < TAGGED_LENGTH:
        return None
    return int(i64_le(wire.sender_buf, int(row["at"]) + SM_GROUP_TAG.offset))


def allowed(
    wire: Wire, messages: Frames, control: FlowControl, start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays: increasing times, and the sender limit (a position) at each time.

    `messages` are the status messages to take into account, in chronological order. `start` is the
    stream's first position.
    """
    if control.strategy == MAX:
        limits = _positions(wire, messages) + messages["window_bytes"]
        reached = np.maximum.accumulate(limits) if len(limits) else limits
        return messages["time_ns"].astype(np.int64), reached
    group = _group(wire, messages, control, start)
    return np.array(group.times_ns, dtype=np.int64), np.array(group.limits, dtype=np.int64)


def joined_counts(wire: Wire, messages: Frames, control: FlowControl) -> tuple[int, int]:
    """Return the lowest and the highest valid value of the largest number of receivers that had
    joined a group at a time. `messages` are as for `allowed`.

    A receiver that is a window behind the others does not join. One that has left may be removed
    later.
    """
    group = _group(wire, messages, control, 0)
    return group.joined_most, len(np.unique(messages["receiver_id"]))


def _positions(wire: Wire, messages: Frames) -> NDArray[np.int64]:
    return positions(messages, wire.facts.initial_term_id, wire.facts.term_length)


def _group(wire: Wire, messages: Frames, control: FlowControl, start: int) -> _Group:
    """Return a group that has processed status messages, and all timeouts after them."""
    times_ns, at = messages["time_ns"].astype(np.int64), _positions(wire, messages)
    limits = at + messages["window_bytes"]
    group = _Group(control, start)
    done = (messages["flags"] & SM_FLAG_END_OF_STREAM) != 0
    near = at + wire.facts.term_length // 2
    near[highest_sent_at(wire, times_ns + READ_WITHIN_NS, start) <= near] = END_OF_TIME_NS
    columns = (times_ns, messages["receiver_id"], limits, messages["window_bytes"], done, near)
    for row in zip(*(each.tolist() for each in columns), strict=True):
        group.on_status_message(*row)
    group.expire_until(END_OF_TIME_NS)
    return group
