"""Flow control: a sender never goes beyond what the receiver's status messages have allowed.

    position   |---- sent ----|- - - - allowed - - - -|      limit = max(position + window) of all
                              ^ now                   ^      status messages that have arrived

The status messages are those that the capture at the sender's host saw before the frame left: the
sender cannot have known of any other. Of a group, whose windows bind is the channel's strategy.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import PAD, SM
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.dissect.frames.layout import SM_FLAG_SEND_SETUP
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.checks.flow_control import group_window
from windtunnel.harness.verdict.checks.flow_control.group_window import MAX, binding
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, Missing, could_not_look, failed, passed
from windtunnel.harness.verdict.core.wire import Wire
from windtunnel.harness.verdict.views.series import known_at

WITHIN = "sends_within_window"


def status_messages(frames: Frames) -> Frames:
    """The status messages that tell a position, among SM and NAK frames."""
    picked: Frames = frames[
        (frames["frame_type"] == SM) & ((frames["flags"] & SM_FLAG_SEND_SETUP) == 0)
    ]
    return picked


def beyond_any_image(traffic: TrafficCase, told: Frames, frames: Frames) -> NDArray[np.bool_]:
    """Which frames of a stream come further ahead of what was told last than an image takes any.

    Behind a PAD, which needs room for its header alone, a sender may be half a term ahead.
    `told` are all that the receiver's host sent, in the order of time.
    """
    beyond = np.zeros(len(frames), dtype=np.bool_)
    told = status_messages(told)
    told = told[told["stream_id"] == traffic.stream_id]
    for session_id in np.unique(told["session_id"]):
        own = told[told["session_id"] == session_id]
        is_own = frames["session_id"] == session_id
        chosen = np.flatnonzero(is_own & (frames["stream_id"] == traffic.stream_id))
        at = np.searchsorted(own["time_ns"], frames["time_ns"][chosen], side="right") - 1
        chosen, last = chosen[at >= 0], own[at[at >= 0]]
        # Numbers of terms come round: their difference is right in 32 bits.
        terms = frames["term_id"][chosen].astype(np.int32) - last["term_id"].astype(np.int32)
        offsets = frames["term_offset"][chosen].astype(np.int64) - last["term_offset"]
        ahead = terms.astype(np.int64) * traffic.term_length + offsets
        beyond[chosen] = ahead > traffic.term_length // 2
    return beyond


def sends_within_window(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """No frame was first sent beyond the window of the status messages that had arrived."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(WITHIN, wire, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    channel = parse_channel(traffic.channel)
    control = channel.flow_control if channel.is_group else FlowControl(MAX)
    told = wire.answered_by_all if channel.is_group else wire.answered
    allowing = binding(wire, status_messages(told), control)
    if len(allowing) == 0:
        gap = Missing(where[0], "shows no status message that reached the publisher's host")
        return could_not_look(WITHIN, gap, traffic.id)
    return _judge(wire, allowing, control, traffic, where)


def _judge(
    wire: Wire,
    allowing: Frames,
    control: FlowControl,
    traffic: TrafficCase,
    where: tuple[str, ...],
) -> Finding:
    first = ~wire.resent()
    frames, starts = wire.sent.frames[first], wire.sent.starts[first]
    # A PAD needs room for what travels of it, its header, though it is charged whole.
    reached = np.where(
        frames["frame_type"] == PAD, starts + DATA_HEADER_LENGTH, wire.sent.ends[first]
    )
    nothing = int(starts.min()) if len(starts) else 0
    times_ns, limits = group_window.allowed(wire, allowing, control, nothing)
    allowed = known_at(times_ns, limits, frames["time_ns"].astype(np.int64), nothing)
    beyond = np.flatnonzero(reached > allowed)
    if len(beyond):
        at = int(beyond[0])
        position, limit = int(starts[at]), int(allowed[at])
        early = int(frames["time_ns"][at]) < int(times_ns[0])
        why = "before any status message had come" if early else f"the limit was {limit}"
        text = (
            f"the frame at position {position} went up to {int(reached[at])}, {why}; "
            f"{len(beyond)} of {len(frames)} frames were sent too early"
        )
        return failed(WITHIN, text, traffic.id, evidence=where, position=position)
    left = int((allowed - reached).min()) if len(reached) else 0
    told = {"frames": len(frames), "status_messages": len(allowing), "least_room": left}
    text = (
        f"{len(frames)} frames stayed within the windows of {len(allowing)} status messages, "
        f"the nearest {left} bytes before its limit"
    )
    return passed(WITHIN, text, traffic.id, evidence=where, facts=told)
