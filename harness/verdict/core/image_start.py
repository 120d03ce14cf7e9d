"""Where the image of an observed stream began, from the captures alone."""

from dataclasses import replace

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import SETUP
from windtunnel.harness.dissect.capture.pcap import Capture
from windtunnel.harness.dissect.frames.flow import of_stream, positions, wrap_i32
from windtunnel.harness.verdict.core.wire import Wire, status_messages


def image_start(wire: Wire, far: Capture) -> int:
    """Return the position at which an image joined its session: that of the receiver's first status
    message, or else of the first SETUP that arrived, or else 0.
    """
    facts = wire.facts
    messages = status_messages(wire.feedback_of_image)
    if len(messages):
        return int(positions(messages, facts.initial_term_id, facts.term_length)[0])
    setups = of_stream(far.frames, facts.session_id, facts.stream_id)
    setups = setups[setups["frame_type"] == SETUP]
    if not len(setups):
        return 0
    terms = wrap_i32(setups["term_id"].astype(np.int64) - facts.initial_term_id)
    starts = terms * facts.term_length + setups["term_offset"]
    return int(starts[np.argmin(setups["time_ns"])])


def from_image_start(wire: Wire, start: int) -> Wire:
    """Return the stream without the data that arrived before its image began."""
    return replace(wire, arrived=wire.arrived.where(wire.arrived.starts >= start))
