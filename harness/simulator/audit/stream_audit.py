"""Checks every stream's invariants after each simulation turn, independently of the driver's code.

    wire      nothing is sent beyond what an SM allowed; a NAK covers a gap, and only if reliable
    counters  rcv-hwm and rcv-pos only rise, rcv-hwm >= rcv-pos, neither runs ahead of the wire
    log       every frame is the expected one, byte for byte, both in image and publication, except
              for bits after the header that the link flipped; an unexpected PAD covers whole
              frames, each disturbed by the link, and only if unreliable

The first violation is recorded with its position, and the world stops. The audit reads datagrams,
counters and logs. Expected frames come from `dissect.expected_log`. Two kinds of loss are not
violations (Aeron 1.53, both drivers). A PAD needs room in the window only for its header, but its
full length counts against the receiver's threshold, so a datagram that ends in a PAD may be
dropped. A datagram whose first frame is already in the image is dropped with all its frames: if the
link divided one of two copies, the other copy may be dropped, although the first one brought less.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    HOLD,
    NO_POSITION,
    SWAP,
    TRUNCATE,
)
from windtunnel.harness.artifact.middlebox.frame_class import (
    DATA,
    HEARTBEAT,
    MALFORMED,
    NAK,
    PAD,
    SM,
)
from windtunnel.harness.dissect.frames.bytes_at import i32_le, i64_le
from windtunnel.harness.dissect.frames.frames import aligned, class_of_first, class_of_next
from windtunnel.harness.middlebox.engine.state import DECISIONS, Engine
from windtunnel.harness.simulator.audit.stream_record import (
    BEYOND_WINDOW,
    DECISIONS_SEEN,
    FLIPS,
    HWM_AHEAD,
    HWM_BELOW,
    HWM_FELL,
    MALFORMED_SENT,
    NAK_AHEAD,
    NAK_NO_GAP,
    NAK_UNRELIABLE,
    RCV_POS_FELL,
    SND_POS_FELL,
    Audit,
    find,
    first_frame_from,
    mark,
    position_of,
    violate,
)

_DATA, _PAD, _NAK, _SM, _HEARTBEAT, _MALFORMED = DATA, PAD, NAK, SM, HEARTBEAT, MALFORMED
_HEADER = 32
FREE_BITS = 8 * 24
"""Bit offset of a frame's reserved value. From there on, the content belongs to the application."""


@kernel
def on_sent(audit: Audit, host: int, buf: Any, at: int, length: int) -> None:
    """Check a datagram that a host sent: its data must be within the receiver window, and a NAK
    must cover a gap.
    """
    if audit.streams.size == 0:
        return
    code = class_of_first(buf, at, length)
    if code == _MALFORMED:
        violate(audit, MALFORMED_SENT, -1, 0, 0, i32_le(buf, at))
    elif code in (_DATA, _PAD):
        index = find(audit, host, i32_le(buf, at + 12), i32_le(buf, at + 16))
        if index >= 0:
            _check_window(audit, index, buf, at, length)
    elif code == _NAK:
        index = find(audit, 1 - host, i32_le(buf, at + 8), i32_le(buf, at + 12))
        if index >= 0:
            _check_nak(audit, index, buf, at)
    elif code == _SM:
        index = find(audit, 1 - host, i32_le(buf, at + 8), i32_le(buf, at + 12))
        if index >= 0:
            stream = audit.streams[index]
            consumed = position_of(stream, i32_le(buf, at + 16), i32_le(buf, at + 20))
            if stream["is_flowing"] and consumed > stream["position"]:
                _freeze(stream)
            else:
                stream["status_top"] = max(stream["status_top"], consumed)


@kernel
def _freeze(stream: Any) -> None:
    """Stop checking a stream. The caller has seen an SM from a later image, so the first image has
    died.

    The application reads only the first image. A later image does not show how the first one
    ended.
    """
    stream["is_succeeded"] = 1
    stream["is_open"] = 0
    stream["is_flowing"] = 0


@kernel
def _check_window(audit: Audit, index: int, buf: Any, at: int, length: int) -> None:
    """Check that sent data ends within the receiver window. Only the header of a PAD counts,
    because only the header is sent.
    """
    stream = audit.streams[index]
    first = position_of(stream, i32_le(buf, at + 20), i32_le(buf, at + 8))
    if first + length > stream["window_end"]:
        violate(audit, BEYOND_WINDOW, index, first, stream["window_end"], first + length)


@kernel
def _check_nak(audit: Audit, index: int, buf: Any, at: int) -> None:
    stream = audit.streams[index]
    stream["naks_out"] += 1
    offset, length_requested = i32_le(buf, at + 20), i32_le(buf, at + 24)
    first = position_of(stream, i32_le(buf, at + 16), offset)
    if not stream["is_reliable"]:
        violate(audit, NAK_UNRELIABLE, index, first, 0, length_requested)
        return
    if first + length_requested > stream["wire_top"]:
        violate(audit, NAK_AHEAD, index, first, stream["wire_top"], first + length_requested)
    # The conductor saw the gap in this turn, before the arrived datagrams were inserted.
    end = first + length_requested
    is_first = first == stream["gap_at"] and end <= stream["gap_end"]
    # Only the first gap is known, and a NAK for a later one is not compared with the image.
    is_part = stream["gap_at"] <= first and (first >= stream["gap_end"] or end <= stream["gap_end"])
    if not is_first and not (stream["is_nak_all_gaps"] and is_part):
        violate(audit, NAK_NO_GAP, index, first, stream["gap_at"], end)


@kernel
def on_landed(audit: Audit, host: int, buf: Any, at: int, length: int) -> None:
    """Update the highest received position, the window or the NAK count of a stream from a datagram
    that has arrived.
    """
    if audit.streams.size == 0:
        return
    code = class_of_first(buf, at, length)
    if code in (_DATA, _PAD, _HEARTBEAT):
        index = find(audit, 1 - host, i32_le(buf, at + 12), i32_le(buf, at + 16))
        if index >= 0:
            _learn_top(audit, index, buf, at, length, code)
    elif code == _SM:
        index = find(audit, host, i32_le(buf, at + 8), i32_le(buf, at + 12))
        if index >= 0:
            stream = audit.streams[index]
            consumed = position_of(stream, i32_le(buf, at + 16), i32_le(buf, at + 20))
            window_end = consumed + i32_le(buf, at + 24)
            stream["window_end"] = max(stream["window_end"], window_end)
    elif code == _NAK:
        index = find(audit, host, i32_le(buf, at + 8), i32_le(buf, at + 12))
        if index >= 0:
            audit.streams[index]["naks_in"] += 1


@kernel
def _learn_top(audit: Audit, index: int, buf: Any, at: int, length: int, code: int) -> None:
    stream = audit.streams[index]
    if audit.state[FLIPS] > 0 and code == _DATA and i32_le(buf, at) > _HEADER:
        audit.state[FLIPS] -= 1
        buf[at + _HEADER] ^= 0x10
    first = position_of(stream, i32_le(buf, at + 20), i32_le(buf, at + 8))
    end, frame_at, ends_in_pad = first, at, False
    while code != _HEARTBEAT and frame_at < at + length:
        code = class_of_next(buf, frame_at, at + length - frame_at)
        if code == _MALFORMED:
            break
        step = aligned(i32_le(buf, frame_at))
        ends_in_pad = code == _PAD
        end += step
        frame_at += step
    if end > stream["status_top"] + stream["term_length"]:
        return  # Forged or corrupted: no correct sender is that far ahead.
    stream["wire_top"] = max(stream["wire_top"], end)
    if not stream["is_reliable"] and end > first:
        _compare_copies(audit, index, first, end)
    if ends_in_pad and end > stream["status_top"] + stream["term_length"] // 2:
        while first < end:
            mark(audit, index, first)
            first += aligned(i32_le(buf, at))
            at += aligned(i32_le(buf, at))


@kernel
def _compare_copies(audit: Audit, index: int, first: int, end: int) -> None:
    """Mark the frames that a host may drop because this datagram overlaps another one without
    being a copy of it: a host drops a datagram if it has its first frame, and the order in which it
    reads its sockets decides which one comes first.
    """
    frame = first_frame_from(audit, index, first)
    while frame < audit.streams[index]["frame_end"] and audit.frames[frame]["position"] < end:
        other, other_end = audit.landed_starts[frame], audit.landed_ends[frame]
        if other_end == 0:
            audit.landed_starts[frame], audit.landed_ends[frame] = first, end
        elif (other, other_end) < (first, end):
            _disturb(audit, index, other_end, end)
        else:
            _disturb(audit, index, end, other_end)
        frame += 1


@kernel
def _disturb(audit: Audit, index: int, first: int, end: int) -> None:
    """Mark the frames between two positions as disturbed."""
    frame = first_frame_from(audit, index, first)
    while frame < audit.streams[index]["frame_end"] and audit.frames[frame]["position"] < end:
        audit.disturbed[frame] = 1
        frame += 1


@kernel
def check_counters(audit: Audit, index: int, near: Any, far: Any) -> None:
    """Check that a stream's position counters only rise, and that rcv-hwm is between rcv-pos and
    the highest position received.
    """
    stream = audit.streams[index]
    hwm = i64_le(far, stream["hwm_id"] * 128)
    rcv_pos = i64_le(far, stream["rcv_pos_id"] * 128)
    snd_pos = i64_le(near, stream["snd_pos_id"] * 128)
    if hwm < stream["hwm"]:
        violate(audit, HWM_FELL, index, hwm, stream["hwm"], hwm)
    if rcv_pos < stream["rcv_pos"]:
        violate(audit, RCV_POS_FELL, index, rcv_pos, stream["rcv_pos"], rcv_pos)
    if snd_pos < stream["snd_pos"]:
        violate(audit, SND_POS_FELL, index, snd_pos, stream["snd_pos"], snd_pos)
    if hwm < rcv_pos:
        violate(audit, HWM_BELOW, index, hwm, rcv_pos, hwm)
    if hwm > stream["wire_top"]:
        violate(audit, HWM_AHEAD, index, hwm, stream["wire_top"], hwm)
    stream["hwm"] = hwm
    stream["rcv_pos"] = rcv_pos
    stream["snd_pos"] = snd_pos


@kernel
def note_decisions(audit: Audit, engine: Engine) -> None:
    """Mark the frames that the middlebox dropped, delayed, truncated or corrupted."""
    state = audit.state
    while state[DECISIONS_SEEN] < engine.state[DECISIONS]:
        decision = engine.decisions[state[DECISIONS_SEEN]]
        state[DECISIONS_SEEN] += 1
        action = decision["action"]
        if decision["position"] == NO_POSITION or action not in (
            DROP,
            HOLD,
            SWAP,
            DISPLACE,
            CORRUPT,
            TRUNCATE,
        ):
            continue
        link, session_id = int(decision["link"]), decision["session_id"]
        index = find(audit, link, session_id, decision["stream_id"])
        if index < 0:
            continue
        frame = mark(audit, index, decision["position"])
        if frame >= 0 and action == CORRUPT and decision["detail"] >= FREE_BITS:
            bits = engine.rules[decision["rule"]]["bits"]
            audit.flipped_bits[frame] = max(audit.flipped_bits[frame], bits)
