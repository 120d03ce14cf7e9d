"""What status messages acknowledge: what every reader has read, told in strides.

readers have read up to      p1        p2  p3        p4
status messages tell         p1 ............ p3 .......      a quarter of the window apart
"""

import numpy as np

from windtunnel.harness.artifact.host.frame_seen import headers
from windtunnel.harness.dissect.frames.flow import aligned_lengths, positions
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import QUARTER
from windtunnel.harness.verdict.checks.flow_control.window import status_messages
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)
from windtunnel.harness.verdict.views.series import known_at

CONSUMED = "status_messages_consumed"
STRIDES = "status_messages_in_strides"
STATIC = "static"


def status_messages_consumed(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A status message tells where a reader has stood, and nothing that was not read before."""
    found = together(
        evidence.wire(traffic), evidence.frames_seen(traffic), evidence.subscriber(traffic)
    )
    if isinstance(found, Missing):
        return could_not_look(CONSUMED, found, traffic.id)
    wire, frames, subscriber = found
    files = evidence.folder.host(traffic.to_host).subscriber(traffic.id)
    capture = evidence.folder.capture(traffic.to_host)
    where = (evidence.name_of(capture), evidence.name_of(files.frames))
    told = status_messages(wire.answering)
    at = positions(told, wire.facts.initial_term_id, wire.facts.term_length)
    ends = frames["position"] + aligned_lengths(headers(frames)["frame_length"])
    # The time was taken before the frame was read, and the status message leaves after that.
    read = known_at(
        frames["time_ns"].astype(np.int64),
        np.maximum.accumulate(ends) if len(ends) else ends,
        told["time_ns"].astype(np.int64),
        subscriber.join_position,
    )
    ahead = np.flatnonzero(at > read)
    if len(ahead):
        position = int(at[ahead[0]])
        text = (
            f"a status message told position {position} when a reader had read up to "
            f"{int(read[ahead[0]])}; {len(ahead)} of {len(told)} are so"
        )
        return failed(CONSUMED, text, traffic.id, evidence=where, position=position)
    between = np.flatnonzero(~np.isin(at, np.append(ends, subscriber.join_position)))
    if len(between):
        position = int(at[between[0]])
        text = f"a status message told position {position}, where no frame ends and no reader stood"
        return failed(CONSUMED, text, traffic.id, evidence=where, position=position)
    text = f"{len(told)} status messages, none of what had not been read"
    return passed(CONSUMED, text, traffic.id, evidence=where)


def status_messages_in_strides(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """A status message tells a new position only when over a quarter of the window was consumed."""
    wire = evidence.wire(traffic)
    if isinstance(wire, Missing):
        return could_not_look(STRIDES, wire, traffic.id)
    where = (evidence.name_of(evidence.folder.capture(traffic.to_host)),)
    if parse_channel(traffic.receive).parameters.get("cc", STATIC) != STATIC:
        text = "the receiver's congestion control may tell more often"
        return passed(STRIDES, text, traffic.id, evidence=where)
    told = status_messages(wire.answering)
    at = positions(told, wire.facts.initial_term_id, wire.facts.term_length)
    for receiver in np.unique(told["receiver_id"]):
        own = np.flatnonzero(told["receiver_id"] == receiver)
        strides, window = np.diff(at[own]), told["window_bytes"][own]
        least = window[1:] // QUARTER
        short = (strides > 0) & (strides <= least) & (window[1:] == window[:-1])
        wrong = np.flatnonzero(short)
        if len(wrong):
            first = int(wrong[0])
            position = int(at[own[first + 1]])
            text = (
                f"a status message told position {position}, only {int(strides[first])} beyond "
                f"the one before, where more than {int(least[first])} lie between two; "
                f"{len(wrong)} of {len(own)} are so"
            )
            return failed(STRIDES, text, traffic.id, evidence=where, position=position)
    text = f"{len(told)} status messages, each repeated or a stride further"
    return passed(STRIDES, text, traffic.id, evidence=where)
