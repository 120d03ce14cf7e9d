"""Check of flow control: a sender never sends beyond the limit set by status messages.

    position   |---- sent ----|- - - - allowed - - - -|      limit = max(position + window) of all
                              ^ now                   ^      status messages that have arrived

The status messages are those that the capture at the sender's host saw before the frame left; the
sender cannot have received any others. In a group, the channel's flow control strategy selects the
windows that count.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, Frames
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.flow_control import FlowControl
from windtunnel.harness.verdict.checks.flow_control import group_window
from windtunnel.harness.verdict.checks.flow_control.group_window import MAX, limiting_messages
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.series import known_at

WITHIN = "sends_within_window"


def beyond_image_window(
    traffic: TrafficCase, messages: Frames, frames: Frames
) -> NDArray[np.bool_]:
    """Return a mask of the frames that an image rejects because they are too far ahead of its
    latest status message.

    After a PAD, which needs window only for its header, a sender may be half a term ahead.
    `messages` are all frames that the receiver's host sent, in chronological order.
    """
    beyond = np.zeros(len(frames), dtype=np.bool_)
    messages = status_messages(messages)
    messages = messages[messages["stream_id"] == traffic.stream_id]
    for session_id in np.unique(messages["session_id"]):
        own = messages[messages["session_id"] == session_id]
        is_own = frames["session_id"] == session_id
        chosen = np.flatnonzero(is_own & (frames["stream_id"] == traffic.stream_id))
        at = np.searchsorted(own["time_ns"], frames["time_ns"][chosen], side="right") - 1
        chosen, last = chosen[at >= 0], own[at[at >= 0]]
        # Term ids wrap around; their difference is correct in 32 bits.
        terms = frames["term_id"][chosen].astype(np.int32) - last["term_id"].astype(np.int32)
        offsets = frames["term_offset"][chosen].astype(np.int64) - last["term_offset"]
        ahead = terms.astype(np.int64) * traffic.term_length + offsets
        beyond[chosen] = ahead > traffic.term_length // 2
    return beyond


def sends_within_window(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """No new frame was sent beyond the limit set by the status messages that had arrived."""
    wire = present(evidence.wire(traffic))
    where = (evidence.name_of(evidence.folder.capture(traffic.from_host)),)
    channel = parse_channel(traffic.channel)
    control = channel.flow_control if channel.is_group else FlowControl(MAX)
    feedback = wire.feedback_arrived_from_all if channel.is_group else wire.feedback_arrived
    allowing = limiting_messages(wire, status_messages(feedback), control)
    if len(allowing) == 0:
        gap = Missing(where[0], "has no status message for the publisher")
        return inconclusive(WITHIN, gap, traffic.id)
    return _judge(wire, allowing, control, traffic, where)


def _judge(
    wire: Wire,
    allowing: Frames,
    control: FlowControl,
    traffic: TrafficCase,
    where: tuple[str, ...],
) -> Finding:
    first = ~wire.retransmitted()
    frames, starts = wire.sent.frames[first], wire.sent.starts[first]
    # A PAD needs window only for its header, which is all that is sent, but uses its full length.
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
        why = "no status message had arrived yet" if early else f"the limit was {limit}"
        text = (
            f"the frame from {position} to {int(reached[at])} was sent, but {why}; "
            f"{len(beyond)} of {len(frames)} frames exceed the limit"
        )
        return failed(WITHIN, text, traffic.id, evidence=where, position=position)
    left = int((allowed - reached).min()) if len(reached) else 0
    facts = {"frames": len(frames), "status_messages": len(allowing), "least_room": left}
    text = (
        f"{len(frames)} frames within the limits of {len(allowing)} status messages; "
        f"the closest frame ends {left} bytes below its limit"
    )
    return passed(WITHIN, text, traffic.id, evidence=where, facts=facts)
