"""Compiled kernels that publish and read the streams of a swarm trial and check every frame that is
read.

    publisher   plan's lengths, payload --the driver's own appender--> log of the publication
    reader      log of the image --> each frame compared with plan, payload and publication's log

Like a client, a reader advances its position only after it has processed the frames before it.
"""

from typing import Any

import numpy as np

from windtunnel.driver.base.atomics import bytes_at, get_i64
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le, u16_le
from windtunnel.harness.dissect.frames.frames import aligned
from windtunnel.harness.simulator.audit.stream_audit import FREE_BITS
from windtunnel.harness.simulator.audit.stream_record import (
    OFFER_REFUSED,
    OTHER_BYTES,
    OTHER_FRAME,
    OTHER_PAYLOAD,
    PART_PADDED,
    RELIABLE_PADDED,
    UNDISTURBED,
    Audit,
    violate,
)

_DATA, _PAD = DATA, PAD
_HEADER = _ALIGNMENT = 32
_FLAGS, _TYPE, _OFFSET, _SESSION, _STREAM, _TERM = 5, 6, 8, 12, 16, 20
_FREE_BITS = FREE_BITS
_AGAIN = (result.BACK_PRESSURED, result.ADMIN_ACTION, result.NOT_CONNECTED)
_BACK_PRESSURED, _ADMIN_ACTION, _NOT_CONNECTED = _AGAIN


@kernel
def has_messages(streams: Any) -> bool:
    """Return whether any publisher has messages to offer."""
    for index in range(streams.size):
        stream = streams[index]
        last = min(stream["gate"], stream["message_end"])
        if stream["is_flowing"] and stream["next_message"] < last:
            return True
    return False


@kernel
def has_slow_reader(streams: Any) -> bool:
    """Return whether any stream's reader pauses between reads."""
    rest_ns = 0
    for index in range(streams.size):
        rest_ns = max(rest_ns, streams[index]["rest_ns"])
    return rest_ns > 0


@kernel
def publish(audit: Audit, index: int, values: Any) -> int:
    """Offer a stream's next messages, up to its burst limit. Returns the number of accepted
    messages.
    """
    stream = audit.streams[index]
    log = bytes_at(stream["log_address"], stream["log_length"])
    limit = i64_le(values, stream["limit_at"])
    state = audit.appenders[index : index + 1]
    last = min(stream["gate"], stream["message_end"])
    count = 0
    while count < stream["burst"] and stream["next_message"] < last:
        length = audit.lengths[stream["next_message"]]
        at = stream["payload_at"] + stream["sent_bytes"]
        position = appender.offer(state, log, limit, audit.payload, at, length, 0)
        if position == _ADMIN_ACTION:
            continue
        if position < 0:
            if position not in (_BACK_PRESSURED, _NOT_CONNECTED):
                violate(audit, OFFER_REFUSED, index, stream["next_message"], 1, position)
            break
        stream["next_message"] += 1
        stream["sent_bytes"] += length
        count += 1
    return count


@kernel
def read(audit: Audit, index: int, values: Any, now_ns: int) -> int:
    """Read and check the available frames, unless the reader is paused.

    Returns the number of frames.
    """
    stream = audit.streams[index]
    visit = 0 if now_ns < stream["rested_ns"] else stream["visit_frames"]
    log = bytes_at(stream["image_address"], stream["image_length"])
    term_length = stream["term_length"]
    count = 0
    while count < visit:
        position = stream["position"]
        at = _index(position, term_length)
        frame_length = i32_le(log, at)
        if frame_length <= 0:
            break
        end = position + aligned(frame_length)
        if u16_le(log, at + _TYPE) == _PAD:
            _check_padding(audit, index, position, end)
        else:
            _check_data(audit, index, log, at, position, frame_length)
        if audit.state[0] != 0:
            break
        stream["position"] = end
        count += 1
    if count > 0:
        counters.set_release(values, stream["sub_pos_id"], stream["position"])
        stream["rested_ns"] = now_ns + stream["rest_ns"]
    if stream["is_reliable"]:
        _measure_gap(stream, log)
    return count


@kernel
def _measure_gap(stream: Any, log: Any) -> None:
    """Find the first gap in a stream's image, and record where it starts and ends."""
    term_length = stream["term_length"]
    first = max(stream["position"], stream["rcv_pos"])
    while first < stream["wire_top"]:
        frame_length = i32_le(log, _index(first, term_length))
        if frame_length <= 0:
            break
        first += aligned(frame_length)
    end = first
    if first < stream["wire_top"]:
        term_end = first - first % term_length + term_length
        while end < term_end and i32_le(log, _index(end, term_length)) == 0:
            end += _ALIGNMENT
    stream["gap_at"] = first
    stream["gap_end"] = end


@kernel
def _index(position: int, term_length: int) -> int:
    """Return the offset of a stream position in the log buffer."""
    return position // term_length % 3 * term_length + position % term_length


@kernel
def _check_padding(audit: Audit, index: int, position: int, end: int) -> None:
    """Check that a PAD is an expected one, or stands for whole frames that were lost or damaged on
    the link.
    """
    stream = audit.streams[index]
    frames = audit.frames
    first = stream["next_frame"]
    if first < stream["frame_end"]:
        planned_end = frames[first]["position"] + aligned(frames[first]["frame_length"])
        if frames[first]["frame_type"] == _PAD and planned_end == end:
            stream["next_frame"] += 1
            return
    if stream["is_reliable"]:
        violate(audit, RELIABLE_PADDED, index, position, 0, end - position)
        return
    while stream["next_frame"] < stream["frame_end"] and position < end:
        frame = stream["next_frame"]
        position += aligned(frames[frame]["frame_length"])
        if not audit.disturbed[frame]:
            violate(audit, UNDISTURBED, index, frames[frame]["position"], end, position)
        stream["next_frame"] += 1
        stream["gap_filled"] += 1
    if position != end:
        violate(audit, PART_PADDED, index, position, end, position)


@kernel
def _check_data(
    audit: Audit, index: int, log: Any, at: int, position: int, frame_length: int
) -> None:
    """Check a data frame's header and payload, and compare it with the publication's log."""
    stream = audit.streams[index]
    frame = stream["next_frame"]
    if frame >= stream["frame_end"]:
        violate(audit, OTHER_FRAME, index, position, 0, frame_length)
        return
    planned = audit.frames[frame]
    term_count = position // stream["term_length"]
    term_id = (stream["initial_term_id"] + term_count + (1 << 31)) % (1 << 32) - (1 << 31)
    if (
        planned["position"] != position
        or planned["frame_type"] != _DATA
        or planned["frame_length"] != frame_length
        or planned["flags"] != log[at + _FLAGS]
        or u16_le(log, at + _TYPE) != _DATA
        or i32_le(log, at + _OFFSET) != position % stream["term_length"]
        or i32_le(log, at + _SESSION) != stream["session_id"]
        or i32_le(log, at + _STREAM) != stream["stream_id"]
        or i32_le(log, at + _TERM) != term_id
    ):
        violate(audit, OTHER_FRAME, index, position, planned["frame_length"], frame_length)
        return
    published = bytes_at(stream["log_address"], stream["log_length"])
    length = aligned(frame_length)
    if differs(log, at, published, at, length):
        if not _is_flipped(log, at, published, length, audit.flipped_bits[frame]):
            violate(audit, OTHER_BYTES, index, position, 0, 0)
        stream["corrupted"] += 1
    else:
        payload_at = stream["payload_at"] + planned["payload_start"]
        if differs(log, at + _HEADER, audit.payload, payload_at, frame_length - _HEADER):
            violate(audit, OTHER_PAYLOAD, index, position, 0, 0)
    stream["next_frame"] += 1


@kernel
def _is_flipped(log: Any, at: int, published: Any, length: int, bits: int) -> bool:
    """Return whether the differences between two frames can result from a flip of `bits` adjacent
    bits.

    Both frames start at `at` in their logs. The bits must follow the header.
    """
    first, last = -1, -1
    for index in range(length):
        difference = np.int64(log[at + index] ^ published[at + index])
        for bit in range(8):
            if difference >> bit & 1:
                last = 8 * index + bit
                if first < 0:
                    first = last
    return bits > 0 and first >= _FREE_BITS and last - first < bits


@kernel
def differs(left: Any, left_at: int, right: Any, right_at: int, length: int) -> bool:
    """Return whether two byte ranges differ."""
    difference: Any = 0
    whole = length & -8
    for index in range(0, whole, 8):
        difference |= get_i64(left, left_at + index) ^ get_i64(right, right_at + index)
    for index in range(whole, length):
        difference |= np.int64(left[left_at + index] ^ right[right_at + index])
    return bool(difference != 0)
