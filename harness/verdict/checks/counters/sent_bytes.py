"""The bytes that a driver counts as sent, found in its host's capture.

    ours, aeron-c    datagrams as they are on the wire
    aeron-java       by how much the sender position has advanced, so it includes padding

A padding frame at the end of a term has only its header on the wire. No driver counts retransmits.
"""

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import HEARTBEAT, PAD, POSITIONAL
from windtunnel.harness.artifact.run.manifest import AERON_JAVA
from windtunnel.harness.dissect.frames.flow import aligned_lengths, lengths_on_wire
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.verdict.core.evidence import Evidence


def java_driver_ran(evidence: Evidence, host: str) -> bool:
    """Return whether a host's driver was Java's."""
    subject = evidence.subject(host)
    return subject is not None and subject.driver == AERON_JAVA


def first_sendings(sent: Frames, *, counts_padding: bool) -> int:
    """Return the number of bytes sent that are not retransmits: heartbeats, and datagrams whose
    first frame is new. The same session from another socket is another publication, such as that of
    a replicated recording. Optionally with the padding of new frames, which only have their headers
    on the wire.
    """
    beats = sent[sent["frame_type"] == HEARTBEAT]
    data = sent[np.isin(sent["frame_type"], POSITIONAL)]
    names = ("term_offset", "term_id", "stream_id", "session_id", "source_port")
    keys = [data[name] for name in names]
    order = np.lexsort((data["datagram"], *keys))
    ordered = np.stack([key[order].astype(np.int64) for key in keys])
    fresh = np.ones(len(data), dtype=np.bool_)
    fresh[order[1:]] = np.any(np.diff(ordered, axis=1) != 0, axis=0)
    heads = np.unique(data["datagram"], return_index=True)[1]
    heads = heads[fresh[heads]]
    counted = (beats, data[heads])
    count = sum(int(each["datagram_length"].astype(np.int64).sum()) for each in counted)
    if counts_padding:
        pads = data[fresh & (data["frame_type"] == PAD)]
        count += int((aligned_lengths(pads["frame_length"]) - lengths_on_wire(pads)).sum())
    return count
