"""Positions of frames, and selection of frames by stream.

    position = (term_id - initial_term_id, wrapped to 32 bits) * term_length + term_offset

The initial term id and term length of a stream are only taken from its SETUP frames.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, PAD, SETUP
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT, Frames


@dataclass(frozen=True)
class StreamFacts:
    """The parameters of a stream, from its SETUP frame."""

    session_id: int
    stream_id: int
    initial_term_id: int
    term_length: int
    mtu: int


def learn_streams(frames: Frames) -> dict[tuple[int, int], StreamFacts]:
    """Return the parameters of each (session id, stream id) from its last SETUP frame."""
    streams = {}
    for row in frames[frames["frame_type"] == SETUP]:
        facts = StreamFacts(
            session_id=int(row["session_id"]),
            stream_id=int(row["stream_id"]),
            initial_term_id=int(row["initial_term_id"]),
            term_length=int(row["term_length"]),
            mtu=int(row["mtu"]),
        )
        streams[facts.session_id, facts.stream_id] = facts
    return streams


def wrap_i32(values: NDArray[Any]) -> NDArray[np.int64]:
    """Wrap integers to signed 32 bits."""
    wide = values.astype(np.int64)
    wrapped: NDArray[np.int64] = ((wide + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return wrapped


def positions(frames: Frames, initial_term_id: int, term_length: int) -> NDArray[np.int64]:
    """Return the position of each frame's first byte or, for a NAK, of the first missing byte."""
    terms = wrap_i32(frames["term_id"].astype(np.int64) - initial_term_id)
    found: NDArray[np.int64] = terms * term_length + frames["term_offset"]
    return found


def aligned_lengths(frame_lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of bytes that frames of the given lengths occupy in their terms."""
    wide = frame_lengths.astype(np.int64)
    aligned: NDArray[np.int64] = (wide + FRAME_ALIGNMENT - 1) & -FRAME_ALIGNMENT
    return aligned


def lengths_on_wire(frames: Frames) -> NDArray[np.int64]:
    """Return the number of bytes of each DATA or PAD frame in its datagram: a PAD has a header on
    the wire, and nothing else.
    """
    aligned = aligned_lengths(frames["frame_length"])
    return np.where(frames["frame_type"] == PAD, np.int64(DATA_HEADER_LENGTH), aligned)


def of_stream(frames: Frames, session_id: int, stream_id: int) -> Frames:
    """Return the frames of a session's stream in both directions."""
    chosen = (frames["stream_id"] == stream_id) & (frames["session_id"] == session_id)
    picked: Frames = frames[chosen]
    return picked


def positional(frames: Frames) -> Frames:
    """Return the frames that occupy bytes of a stream: DATA and PAD."""
    kinds = frames["frame_type"]
    picked: Frames = frames[(kinds == DATA) | (kinds == PAD)]
    return picked


def heartbeats(frames: Frames) -> Frames:
    """Return the heartbeats, which have a position but occupy no bytes."""
    picked: Frames = frames[frames["frame_type"] == HEARTBEAT]
    return picked
