"""An offer that gets each frame's reserved value from an application function.

The function receives each whole frame, with header and payload, before it is published, for example
to compute a checksum or a timestamp. It runs between claim and commit, so it delays subscribers. If
it raises, the frames that are claimed but not committed become padding, and the exception
propagates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windtunnel.driver.base.atomics import copy, put_i64
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender, frame, tail
from windtunnel.driver.wire import data

ReservedValueSupplier = Callable[[memoryview], int]
"""Function that returns the reserved value of a frame, uint8[frame length], whose payload begins at
byte 32."""


@kernel
def claim_message(state, log, values, limit_at, length):
    """Claim the space for all frames of a message of `length` bytes.

    Returns: (the position after the message or an error code, its offset in the log, its term id,
             its term offset)
    """
    limit = counters.get_acquire(values, limit_at // counters.COUNTER_LENGTH)
    if length > state[0].max_message_length:
        return tail.refuse_length(state, log, limit, length), 0, 0, 0
    framed = tail.framed_length(length, state[0].max_payload_length)
    return tail.claim(state, log, limit, framed, length)


@kernel
def fill_frame(log, at, meta_at, term_id, term_offset, flags, source, source_at, length):
    """Write a frame without its reserved value and without committing it."""
    frame_length = length + frame.HEADER_LENGTH
    frame.write_header(log, at, meta_at, frame_length, term_id, term_offset)
    copy(log, at + data.PAYLOAD, source, source_at, length)
    frame.set_flags(log, at, flags)


@kernel
def publish_frame(log, at, frame_length, reserved_value):
    put_i64(log, at + data.RESERVED_VALUE, reserved_value)
    frame.publish(log, at, frame_length)


@kernel
def pad(log, at, meta_at, frame_length, term_id, term_offset):
    """Turn claimed bytes into a padding frame."""
    frame.write_padding(log, at, meta_at, frame_length, term_id, term_offset)


def offer(
    state: np.ndarray,
    log: np.ndarray,
    values: np.ndarray,
    limit_at: int,
    source: np.ndarray,
    supplier: ReservedValueSupplier,
) -> int:
    """Write a message, and call the reserved value supplier once for each frame of the
    message.

    Shapes:  state APPENDER[1], log uint8[n], source uint8[length]
    Returns: the position after the message, or a negative code
    """
    length = source.size
    claimed = claim_message(state, log, values, limit_at, length)
    outcome, at, term_id, term_offset = (int(item) for item in claimed)
    if outcome < 0:
        return outcome
    meta_at, payload_max = int(state[0].meta_at), int(state[0].max_payload_length)
    view = memoryview(log)
    end_at = at + int(tail.framed_length(length, payload_max))
    done = 0
    while True:
        payload = min(length - done, payload_max)
        frame_length = payload + data.HEADER_LENGTH
        flags = int(appender.fragment_flags(done, payload, length))
        fill_frame(log, at, meta_at, term_id, term_offset, flags, source, done, payload)
        try:
            reserved_value = int(supplier(view[at : at + frame_length]))
            publish_frame(log, at, frame_length, reserved_value)
        except BaseException:
            pad(log, at, meta_at, end_at - at, term_id, term_offset)
            raise
        occupied = int(frame.aligned(frame_length))
        at, term_offset, done = at + occupied, term_offset + occupied, done + payload
        if done >= length:
            return outcome
