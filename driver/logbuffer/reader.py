"""Walking the committed frames of a term: for subscriptions, taps and blocks.

A walk stops at the first slot that is not committed and never leaves its term. A frame that claims
to reach beyond the term cannot have been committed by a well-behaved writer; it is treated as not
there, so that a damaged file stops its own stream and nothing else.
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
            ("at", "i8"),  # where the payload begins in the log
            ("length", "i8"),  # of the payload
            ("frame_type", "i8"),
            ("frame_flags", "i8"),  # `flags` alone is an attribute of every numpy record
            ("reserved_value", "i8"),
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),  # of the frame
            ("end_offset", "i8"),  # of the frame, aligned: where the stream goes on
        ],
    )
)


def fragments(count: int) -> np.ndarray:
    """Room for `count` fragments, to be made once and used for every poll."""
    return np.zeros(count, FRAGMENT)


@kernel
def committed_end(log, base, term_length, offset):
    """Where the committed frame at `offset` ends, aligned, or -1 if there is none."""
    if offset >= term_length:
        return -1
    frame_length = frame.frame_length_acquire(log, base + offset)
    if frame_length <= 0:
        return -1
    end = offset + frame.aligned(frame_length)
    return end if end <= term_length else -1


@kernel
def describe(log, base, offset, end_offset, fragment):
    """Fill one FRAGMENT from the frame at `offset`."""
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
    """Collect the data frames from `offset`; padding is passed over and does not count.

    Shapes:  log uint8[n], fragments FRAGMENT[m]
    Returns: (how many fragments, the offset behind the last frame passed); a frame begins before
             `limit_offset`
    """
    count = 0
    wanted = min(max_fragments, fragments.size)
    while count < wanted and offset < limit_offset:
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
    """Like `poll`, with padding frames among the fragments."""
    count = 0
    wanted = min(max_fragments, fragments.size)
    while count < wanted and offset < limit_offset:
        end = committed_end(log, base, term_length, offset)
        if end < 0:
            break
        describe(log, base, offset, end, fragments[count])
        count += 1
        offset = end
    return count, offset


@kernel
def block(log, base, term_length, offset, limit_offset):
    """The end of the whole frames before `limit_offset`; padding comes alone or not at all.

    Returns: the offset behind the block, `offset` itself if there is none; only a padding frame
             that comes first may reach beyond the limit
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
