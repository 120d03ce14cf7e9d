"""The RTTM frames of one stream in the capture of one host.

offset   16              24                32
         echo timestamp | reception delta | receiver id          a request has the reply flag
"""

import struct
from dataclasses import dataclass

from windtunnel.harness.dissect.capture.pcap import Capture, sent_by
from windtunnel.harness.dissect.frames.flow import StreamFacts
from windtunnel.harness.dissect.frames.layout import RTTM, RTTM_FLAG_REPLY

_FIELDS = struct.Struct("<qqq")
_ECHO_AT = RTTM.field("echo_timestamp").offset


@dataclass(frozen=True)
class RttFrame:
    """One RTTM frame."""

    time_ns: int
    echo: int
    "The timestamp of the party that asked, which only this party can interpret."
    delta_ns: int
    flags: int = 0


@dataclass(frozen=True)
class RttFrames:
    """RTTM frames of one direction, in chronological order."""

    requests: tuple[RttFrame, ...]
    replies: tuple[RttFrame, ...]


def rtt_frames(capture: Capture, facts: StreamFacts, sender: str) -> RttFrames:
    """Return the RTTM frames of a stream that an address sent."""
    frames = capture.frames[sent_by(capture.frames, sender)]
    is_own = (frames["session_id"] == facts.session_id) & (frames["stream_id"] == facts.stream_id)
    is_whole = frames["datagram_length"] >= RTTM.length
    chosen = frames[(frames["frame_type"] == RTTM.type_code) & is_own & is_whole]
    requests: list[RttFrame] = []
    replies: list[RttFrame] = []
    for row in chosen:
        at = int(row["at"]) + _ECHO_AT
        echo, delta_ns, _ = _FIELDS.unpack(capture.buf[at : at + _FIELDS.size].tobytes())
        flags = int(row["flags"])
        frame = RttFrame(int(row["time_ns"]), echo, delta_ns, flags)
        (requests if flags & RTTM_FLAG_REPLY else replies).append(frame)
    return RttFrames(tuple(requests), tuple(replies))
