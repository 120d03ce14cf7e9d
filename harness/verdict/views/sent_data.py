"""The data of a stream that its publisher's host sent, to whomever.

    to b      1 2 3 4 5 6 7 8
    to c            4 5 6 7 8      c became a destination later

A publication with several destinations sends each one the same data, from the time on at which it
is a destination.
"""

import numpy as np

from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.flow import (
    aligned_lengths,
    of_stream,
    positional,
    positions,
)
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import present
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire


def sent_to_any(evidence: Evidence, traffic: TrafficCase, wire: Wire) -> FrameSequence:
    """Return the DATA and PAD frames of a stream's session that its publisher's host sent to any
    receiver, in chronological order.
    """
    if len(traffic.subscribers) == 1:
        return wire.sent
    case, near = present(evidence.case, evidence.capture_of_streams(traffic.from_host))
    facts = wire.facts
    frames = of_stream(near.frames, facts.session_id, facts.stream_id)
    frames = positional(frames[sent_by(frames, case.address(traffic.from_host))])
    frames = frames[np.argsort(frames["time_ns"], kind="stable")]
    starts = positions(frames, facts.initial_term_id, facts.term_length)
    return FrameSequence(frames, starts, starts + aligned_lengths(frames["frame_length"]))
