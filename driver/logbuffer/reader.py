"""Reads the committed frames of a term for subscriptions, spies and block polls.

Reading stops at the first slot that is not committed and never leaves its term. A frame that
extends beyond the term is treated as not committed, because no correct writer commits it; a damaged
file thus blocks only its own stream.
Source: driver-protocol 2.6, reading.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import frame
from windtunnel.driver.wire import data, header
from windtunnel.driver.wire import frame_type as types

FRAGMENT = np.dtype(
    (
        np.record,
        [
            ("at", "i8"),  # offset of the payload in the log
            ("length", "i8"),  # of the payload
            ("frame_type", "i8"),
            ("frame_flags", "i8"),  # `flags` alone is an attribute of every numpy record
            ("reserved_value", "i8"),
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),  # of the frame
            ("end_offset", "i8"),  # of the frame, aligned: offset of the next frame
        ],
    )
)


def fragments(count: int) -> np.ndarray:
    """Allocate a reusable array of `count` FRAGMENT records."""
    return np.zeros(count, FRAGMENT)


@kernel
def committed_end(log, base, term_length, offset):
    """Return the aligned end of the committed frame at `offset`, or -1 if no frame is committed."""
    if offset >= term_length:
        return -1
    frame_length = frame.frame_length_acquire(log, base + offset)
    if frame_length <= 0:
        return -1
    step = frame.aligned(frame_length)
    header.prefetch_later(log, base + offset, step)
    end = offset + step
    return end if end <= term_length else -1


@kernel
def describe(log, base, offset, end_offset, fragment):
    """Fill one FRAGMENT record with the description of the frame at `offset`."""
    at = base + offset
    fragment.at = at + data.PAYLOAD
    fragment.length = max(header.frame_length(log, at) - frame.HEADER_LENGTH, 0)
    fragment.frame_type = frame.frame_type(log, at)
    fragment.frame_flags = frame.flags(log, at)
    fragment.reserved_value = data.reserved_value(log, at)
    fragment.session_id = data.session_id(log, at)
    fragment.stream_id = data.stream_id(log, at)
    fragment.term_id = data.term_id(log, at)
    fragment.term_offset = offset
    fragment.end_offset = end_offset


@kernel
def poll(log, base, term_length, offset, limit_offset, fragments, max_fragments):
    """Describe the committed data frames, starting at `offset`, in FRAGMENT records. Skips padding
    frames.

    Shapes:  log uint8[n], fragments FRAGMENT[m]
    Returns: (number of fragments, the offset after the last frame read); only frames that begin
             before `limit_offset` are read
    """
    count = 0
    fragment_limit = min(max_fragments, fragments.size)
    while count < fragment_limit and offset < limit_offset:
        end = committed_end(log, base, term_length, offset)
        if end < 0:
            break
        if frame.frame_type(log, base + offset) != types.PAD:
            describe(log, base, offset, end, fragments[count])
            count += 1
        offset = end
    return count, offset


@kernel
def poll_frames(log, base, term_length, offset, limit_offset, fragments, max_fragments):
    """Describe all committed frames, starting at `offset` and including padding frames, in FRAGMENT
    records.
    """
    count = 0
    fragment_limit = min(max_fragments, fragments.size)
    while count < fragment_limit and offset < limit_offset:
        end = committed_end(log, base, term_length, offset)
        if end < 0:
            break
        describe(log, base, offset, end, fragments[count])
        count += 1
        offset = end
    return count, offset


@kernel
def block(log, base, term_length, offset, limit_offset):
    """Find the end of the next block, which is either a run of whole frames before `limit_offset`
    or one padding frame.

    Returns: the offset after the block, or `offset` itself if there is no block; only a padding
             frame at the start of the block may exceed the limit
    """
    start = offset
    while offset < limit_offset:
        end = committed_end(log, base, term_length, offset)
        if end < 0:
            break
        if frame.frame_type(log, base + offset) == types.PAD:
            return end if offset == start else offset
        if end > limit_offset:
            break
        offset = end
    return offset
