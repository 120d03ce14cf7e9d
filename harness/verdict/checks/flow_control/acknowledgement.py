"""Checks that status messages carry consumed positions, and advance by more than a quarter window
at a time.

subscribers have consumed    p1        p2  p3        p4
status messages contain      p1 ............ p3 .......      a quarter of the window apart

An image begins to send status messages with the position at which it joined.
"""

import numpy as np

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import QUARTER
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.series import known_at

CONSUMED = "status_messages_consumed"
STEPS = "status_messages_in_strides"
STATIC = "static"
DEFAULT_WINDOW_BYTES = 128 * 1024
"""Receiver window of a channel without rcv-wnd. Source: Aeron 1.53."""
INITIAL_WINDOW = "AERON_RCV_INITIAL_WINDOW_LENGTH"
"""The driver setting that changes it."""


def status_messages_consumed(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Each status message's position is the end of a frame that was already consumed."""
    wire, frames, subscriber = present(
        evidence.wire(traffic), evidence.frames_seen(traffic), evidence.subscriber(traffic)
    )
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    capture = evidence.folder.capture(traffic.to_host)
    where = (evidence.name_of(capture), evidence.name_of(files.frames))
    messages = status_messages(wire.feedback_sent)
    at = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    frames = frames[headers(frames)["session_id"] == wire.facts.session_id]
    ends = frames["position"] + aligned_lengths(headers(frames)["frame_length"])
    joins = [each.join_position for each in subscriber.parts]
    joins = joins or [subscriber.join_position]
    # A frame's time was recorded before the frame was consumed. The status message is sent later.
    read = known_at(
        frames["time_ns"].astype(np.int64),
        np.maximum.accumulate(ends) if len(ends) else ends,
        messages["time_ns"].astype(np.int64),
        joins[0],
    )
    ahead = np.flatnonzero((at > read) & ~np.isin(at, joins))
    if len(ahead):
        position = int(at[ahead[0]])
        text = (
            f"a status message has position {position}, but the subscriber had consumed only up to "
            f"{int(read[ahead[0]])}; {len(ahead)} of {len(messages)} status messages are ahead"
        )
        return failed(CONSUMED, text, traffic.id, evidence=where, position=position)
    between = np.flatnonzero(~np.isin(at, np.append(ends, joins)))
    if len(between):
        position = int(at[between[0]])
        text = f"a status message has position {position}, at which no frame ends"
        return failed(CONSUMED, text, traffic.id, evidence=where, position=position)
    text = f"{len(messages)} status messages, none ahead of the consumed position"
    return passed(CONSUMED, text, traffic.id, evidence=where)


def status_messages_in_strides(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """Status messages advance only after more than a quarter of the window has been consumed, and
    their window is the configured one, but at most half a term.
    """
    wire = present(evidence.wire(traffic))
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    if parse_channel(traffic.receive).parameters.get("cc", STATIC) != STATIC:
        text = "not applicable: the receiver's congestion control may send status messages more "
        text += "often"
        return passed(STEPS, text, traffic.id, evidence=where)
    messages = status_messages(wire.feedback_sent)
    at = positions(messages, wire.facts.initial_term_id, wire.facts.term_length)
    window_bytes = constant_window_bytes(evidence, traffic, wire)
    others = np.setdiff1d(messages["window_bytes"], [0, window_bytes or 0])
    if window_bytes is not None and len(others):
        text = f"a status message has a window of {int(others[0])} bytes, expected {window_bytes}"
        return failed(STEPS, text, traffic.id, evidence=where)
    for receiver in np.unique(messages["receiver_id"]):
        own = np.flatnonzero(messages["receiver_id"] == receiver)
        steps, window = np.diff(at[own]), messages["window_bytes"][own]
        least = window[1:] // QUARTER
        short = (steps > 0) & (steps <= least) & (window[1:] == window[:-1])
        wrong = np.flatnonzero(short)
        if len(wrong):
            first = int(wrong[0])
            position = int(at[own[first + 1]])
            text = (
                f"a status message has position {position}, {int(steps[first])} bytes after the "
                f"previous one, expected more than {int(least[first])}; "
                f"{len(wrong)} of {len(own)} status messages are too close"
            )
            return failed(STEPS, text, traffic.id, evidence=where, position=position)
    text = f"{len(messages)} status messages, each at the previous position or more than a quarter "
    text += "window ahead"
    return passed(STEPS, text, traffic.id, evidence=where)


def constant_window_bytes(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> int | None:
    """Return the constant receiver window of a stream's image, or None if it is unknown: in real
    time, a driver may have another default.
    """
    window = parse_channel(traffic.receive).receiver_window_bytes
    subject = evidence.subject(traffic.to_host)
    is_default = is_virtual(evidence.case) and (
        subject is None or INITIAL_WINDOW not in subject.settings
    )
    if window is None and not is_default:
        return None
    return min(window or DEFAULT_WINDOW_BYTES, wire.facts.term_length // 2)
