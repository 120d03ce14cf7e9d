"""Writes messages to a publication's log: offers, claims, padding and batches.

A message longer than one frame becomes several frames in one term, BEGIN on the first and END on
the last. Each frame is claimed by a negative length, filled, and committed by its positive length.

Every offer returns the position after the message, or a code of `publication_result`. `limit` is
the publication limit that the caller has just read. The state of an exclusive publication belongs
to one thread. The state of a concurrent publication is only read, except that `claim` stores the
last claim there. Source: driver-protocol 2.6.
"""

import numpy as np

from windtunnel.driver.base.arith import bits_to_shift
from windtunnel.driver.base.atomics import (
    AHEAD_LENGTH,
    address_of,
    copy,
    copy_ahead,
    get_i32_acquire,
    get_i64_acquire,
    prefetch_to_write,
    put_i64,
)
from windtunnel.driver.kernels.jit import inlined_kernel, kernel
from windtunnel.driver.logbuffer import descriptor, frame, position, tail
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.wire import data
from windtunnel.driver.wire import frame_type as types

APPENDER = np.dtype(
    (
        np.record,
        [
            ("log_address", "i8"),  # start of the mapped file, which must outlive this record
            ("log_length", "i8"),
            ("meta_at", "i8"),  # offset of the metadata in the log
            ("term_length", "i8"),
            ("bits", "i8"),  # log2 of the term length
            ("initial_term_id", "i8"),
            ("session_id", "i8"),
            ("stream_id", "i8"),
            ("max_payload_length", "i8"),  # largest payload of one frame
            ("max_message_length", "i8"),
            ("is_exclusive", "i8"),
            # The position of an exclusive publication; unused in a concurrent one.
            ("term_begin_position", "i8"),
            ("active_index", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),
            # The offset in the log and the length of the frame last claimed through this record.
            ("claim_at", "i8"),
            ("claim_length", "i8"),
        ],
    )
)


@inlined_kernel
def write_frame(
    log, at, meta_at, term_id, term_offset, flags, source, source_at, length, reserved_value
):
    """Write and commit one frame in space that is already claimed."""
    frame_length = length + frame.HEADER_LENGTH
    prefetch_to_write(log, at + AHEAD_LENGTH)
    frame.write_header(log, at, meta_at, frame_length, term_id, term_offset)
    copy_ahead(log, at + data.PAYLOAD, source, source_at, length)
    frame.set_flags(log, at, flags)
    put_i64(log, at + data.RESERVED_VALUE, reserved_value)
    frame.publish(log, at, frame_length)


@kernel
def fragment_flags(offset, payload, length):
    """Return the BEGIN and END flags for the `payload` bytes at `offset` in a message."""
    flags = types.BEGIN if offset == 0 else 0
    return flags | (types.END if offset + payload == length else 0)


@kernel
def offer(appender, log, limit, source, source_at, length, reserved_value):
    """Write one message, in fragments if needed.

    Shapes:  appender APPENDER[1], log uint8[n], source uint8[m]
    Returns: the position after the message, or a code
    """
    state = appender[0]
    if length < 0 or source_at < 0 or source_at + length > source.size:
        return result.ERROR
    if length > state.max_message_length:
        return tail.refuse_length(appender, log, limit, length)
    framed = tail.framed_length(length, state.max_payload_length)
    outcome, at, term_id, term_offset = tail.claim(appender, log, limit, framed, length)
    if outcome < 0:
        return outcome
    meta_at, done = state.meta_at, 0
    # An empty message is one empty frame.
    while True:
        payload = min(length - done, state.max_payload_length)
        flags = fragment_flags(done, payload, length)
        write_frame(
            log,
            at,
            meta_at,
            term_id,
            term_offset,
            flags,
            source,
            source_at + done,
            payload,
            reserved_value,
        )
        occupied = frame.aligned(payload + frame.HEADER_LENGTH)
        at += occupied
        term_offset += occupied
        done += payload
        if done >= length:
            return outcome


@kernel
def total_length(source, ranges):
    """Return the total length of `ranges` in bytes, or -1 if a range lies outside `source`."""
    total = 0
    for i in range(ranges.shape[0]):
        at, length = ranges[i, 0], ranges[i, 1]
        if at < 0 or length < 0 or at + length > source.size:
            return -1
        total += length
    return total


@kernel
def gather(log, at, source, ranges, index, consumed, length):
    """Copy `length` bytes from consecutive ranges of `source` to the log. The first byte is at
    offset `consumed` in range `index`.

    Returns: (index, consumed) of the byte after the last one copied
    """
    while length > 0:
        left = ranges[index, 1] - consumed
        step = min(left, length)
        copy(log, at, source, ranges[index, 0] + consumed, step)
        at += step
        length -= step
        consumed += step
        if step == left:
            index += 1
            consumed = 0
    return index, consumed


@kernel
def offer_vectored(appender, log, limit, source, ranges, reserved_value):
    """Write one message whose parts are several ranges of `source`.

    Shapes:  ranges int64[n, 2], each row (offset, length)
    Returns: the position after the message, or a code
    """
    state = appender[0]
    length = total_length(source, ranges)
    if length < 0:
        return result.ERROR
    if length > state.max_message_length:
        return tail.refuse_length(appender, log, limit, length)
    framed = tail.framed_length(length, state.max_payload_length)
    outcome, at, term_id, term_offset = tail.claim(appender, log, limit, framed, length)
    if outcome < 0:
        return outcome
    meta_at, done, index, consumed = state.meta_at, 0, 0, 0
    while True:
        payload = min(length - done, state.max_payload_length)
        frame_length = payload + frame.HEADER_LENGTH
        frame.write_header(log, at, meta_at, frame_length, term_id, term_offset)
        index, consumed = gather(log, at + data.PAYLOAD, source, ranges, index, consumed, payload)
        frame.set_flags(log, at, fragment_flags(done, payload, length))
        put_i64(log, at + data.RESERVED_VALUE, reserved_value)
        frame.publish(log, at, frame_length)
        at += frame.aligned(frame_length)
        term_offset += frame.aligned(frame_length)
        done += payload
        if done >= length:
            return outcome


@kernel
def offer_batch(appender, log, values, limit_at, source, source_at, lengths, first, count):
    """Offer up to `count` messages, which are contiguous in `source`, until an offer fails.

    Message `first` begins at `source_at`.
    Shapes:  values uint8[n] with the publication limit at byte `limit_at`; lengths int64[m]
    Memory:  the limit is read again, with acquire, for every message
    Returns: (number of messages written, result of the last offer)
    """
    outcome = result.ERROR
    for i in range(first, min(first + count, lengths.size)):
        limit = get_i64_acquire(values, limit_at)
        outcome = offer(appender, log, limit, source, source_at, lengths[i], 0)
        if outcome < 0:
            return i - first, outcome
        source_at += lengths[i]
    return max(min(count, lengths.size - first), 0), outcome


@kernel
def claim(appender, log, limit, length):
    """Claim one frame. The caller writes the payload in place, at the log offset `claim_at`
    + 32.

    Subscribers cannot read past the claim until `commit` or `abort`. Threads that share an appender
    must not claim concurrently.
    Returns: the position after the claim, or a code
    """
    state = appender[0]
    if length < 0 or length > state.max_payload_length:
        return result.ERROR
    frame_length = length + frame.HEADER_LENGTH
    outcome, at, term_id, term_offset = tail.claim(
        appender, log, limit, frame.aligned(frame_length), length
    )
    if outcome > 0:
        frame.write_header(log, at, state.meta_at, frame_length, term_id, term_offset)
        state.claim_at = at
        state.claim_length = frame_length
    return outcome


@kernel
def commit(log, claim_at):
    """Publish a claimed frame. Returns False if the driver has already unblocked it."""
    frame_length = get_i32_acquire(log, claim_at)
    if frame_length >= 0:
        return False
    frame.publish(log, claim_at, -frame_length)
    return True


@kernel
def abort(log, claim_at):
    """Turn a claimed frame into padding. Returns False if the driver has already unblocked it."""
    frame_length = get_i32_acquire(log, claim_at)
    if frame_length >= 0:
        return False
    frame.set_type(log, claim_at, types.PAD)
    frame.publish(log, claim_at, -frame_length)
    return True


@kernel
def append_padding(appender, log, limit, length):
    """Write one padding frame with `length` bytes of payload to an exclusive publication."""
    state = appender[0]
    if state.is_exclusive == 0 or length < 0 or length > state.max_message_length:
        return result.ERROR
    frame_length = length + frame.HEADER_LENGTH
    outcome, at, term_id, term_offset = tail.claim_exclusive(
        appender, log, limit, frame.aligned(frame_length), length
    )
    if outcome > 0:
        frame.write_padding(log, at, state.meta_at, frame_length, term_id, term_offset)
    return outcome


def attach(log: np.ndarray, meta_at: int) -> np.ndarray:
    """Create the APPENDER record of a valid log (see `check_log`). The log must stay mapped."""
    appender = np.zeros(1, APPENDER)
    state = appender[0]
    state.log_address, state.log_length, state.meta_at = address_of(log), log.size, meta_at
    state.term_length = term_length = int(descriptor.term_length(log, meta_at))
    state.bits = int(bits_to_shift(term_length))
    state.initial_term_id = initial_term_id = int(descriptor.initial_term_id(log, meta_at))
    state.session_id = descriptor.session_id(log, meta_at)
    state.stream_id = descriptor.stream_id(log, meta_at)
    state.max_payload_length = int(descriptor.mtu_length(log, meta_at)) - frame.HEADER_LENGTH
    state.max_message_length = position.max_message_length(term_length)
    state.is_exclusive = descriptor.log_type(log, meta_at) == descriptor.EXCLUSIVE_PUBLICATION
    index = position.index_of_count(descriptor.active_term_count_acquire(log, meta_at))
    raw_tail = descriptor.raw_tail_acquire(log, meta_at, index)
    state.active_index, state.term_id = index, descriptor.tail_term_id(raw_tail)
    state.term_offset = descriptor.tail_offset(raw_tail, term_length)
    state.term_begin_position = position.of(state.term_id, 0, int(state.bits), initial_term_id)
    return appender
