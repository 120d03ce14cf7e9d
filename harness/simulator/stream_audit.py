"""What must hold of every stream at every turn, by the harness's own tables.

    wire      nothing is sent beyond what an SM allowed; a NAK asks for a hole, and only if reliable
    counters  rcv-hwm and rcv-pos only rise, rcv-hwm >= rcv-pos, neither runs ahead of the wire
    log       every frame is the planned one, byte for byte, in image and publication alike, but for
              the bits that the link flipped behind the header's place; a PAD that was not planned
              covers whole frames, each disturbed, and only if unreliable

The first violation is kept with its place, and the world stops. Knows nothing of how the driver
works: it reads datagrams, counters and logs. Frames come from `dissect.expected_log`. One loss is
nobody's fault: of a PAD only the header counts against the window, but all of it against the
receiver's threshold, so a datagram that ends in one may be dropped (Aeron 1.53, both drivers).
"""

from typing import Any, NamedTuple

import numpy as np

from driver.logbuffer.appender import APPENDER
from harness.artifact.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    HOLD,
    NO_POSITION,
    SWAP,
    TRUNCATE,
)
from harness.artifact.frame_class import DATA, HEARTBEAT, MALFORMED, NAK, PAD, SM
from harness.dissect.bytes_at import i32_le, i64_le
from harness.dissect.expected_log import EXPECTED_FRAME
from harness.dissect.frames import aligned, class_of_first, class_of_next
from harness.kernel import bare_kernel
from harness.middlebox.state import DECISIONS, Engine

STREAM = np.dtype(
    [
        ("is_open", "<i8"),  # whether its datagrams are looked at: ids and start are known
        ("is_flowing", "<i8"),  # whether it is published and read: logs and counters are known
        ("from_host", "<i8"),  # 0 or 1
        ("session_id", "<i8"),
        ("stream_id", "<i8"),
        ("initial_term_id", "<i8"),
        ("term_length", "<i8"),
        ("is_reliable", "<i8"),
        ("log_address", "<i8"),  # of the publication's log
        ("log_length", "<i8"),
        ("image_address", "<i8"),  # of the image's log
        ("image_length", "<i8"),
        ("limit_at", "<i8"),  # byte offset of pub-lmt in its host's counter values
        ("snd_pos_id", "<i8"),
        ("hwm_id", "<i8"),
        ("rcv_pos_id", "<i8"),
        ("sub_pos_id", "<i8"),
        ("payload_at", "<i8"),  # where its content begins in the payload
        ("burst", "<i8"),  # messages offered in one turn at most
        ("next_message", "<i8"),  # in `lengths`
        ("gate", "<i8"),  # message before which the publisher waits for good weather
        ("message_end", "<i8"),
        ("sent_bytes", "<i8"),
        ("next_frame", "<i8"),  # in `frames`
        ("frame_end", "<i8"),
        ("position", "<i8"),  # how far was read
        ("end_position", "<i8"),
        ("hwm", "<i8"),  # as last seen
        ("rcv_pos", "<i8"),
        ("snd_pos", "<i8"),
        ("wire_top", "<i8"),  # highest position that a datagram showed the receiver
        ("window_end", "<i8"),  # highest position that an SM allowed the sender
        ("status_top", "<i8"),  # highest consumption position that an SM told, from join on
        ("hole_at", "<i8"),  # the first byte that the image lacked at the end of the last turn
        ("hole_end", "<i8"),  # and where that hole ended: a frame, or the term's end
        ("naks_out", "<i8"),  # NAKs that left the receiver
        ("naks_in", "<i8"),  # NAKs that reached the sender
        ("filled", "<i8"),  # frames that gap fills covered
        ("bent", "<i8"),  # frames that were delivered with bits that the link had flipped
        ("visit_frames", "<i8"),  # that the reader takes at most before it rests
        ("rest_ns", "<i8"),  # how long it rests; 0 for a reader that never does
        ("rested_ns", "<i8"),  # when it reads again
    ]
)

# Violations.
NONE = 0
CODES = {
    1: "the image holds another frame than was published",
    2: "the image's bytes are not the publication's",
    3: "the image's bytes are not the payload's",
    4: "a PAD covers part of a frame",
    5: "a PAD covers a frame that the link did not disturb",
    6: "a reliable stream was padded",
    7: "rcv-hwm fell",
    8: "rcv-pos fell",
    9: "rcv-hwm is below rcv-pos",
    10: "rcv-hwm is ahead of the wire",
    11: "data was sent beyond the receiver's window",
    12: "an unreliable stream sent a NAK",
    13: "a NAK does not ask for the first hole",
    14: "a NAK asks for what nobody has heard of",
    15: "a datagram is malformed",
    16: "snd-pos fell",
    17: "an offer was refused for good",
}
(
    OTHER_FRAME,
    OTHER_BYTES,
    OTHER_PAYLOAD,
    PART_PADDED,
    UNDISTURBED,
    RELIABLE_PADDED,
    HWM_FELL,
    RCV_POS_FELL,
    HWM_BELOW,
    HWM_AHEAD,
    BEYOND_WINDOW,
    NAK_UNRELIABLE,
    NAK_NO_HOLE,
    NAK_AHEAD,
    MALFORMED_SENT,
    SND_POS_FELL,
    OFFER_REFUSED,
) = CODES

# Cells of `state`.
CODE, WHERE, PLACE, EXPECTED, FOUND, DECISIONS_SEEN, FLIPS, GOAL = range(8)
"""The violation; decisions of the middlebox looked at; datagrams still to be damaged; what the
shell waits for."""
NO_GOAL, GATES, ENDS = range(3)
"""Goals: every publisher is at its gate, every reader at the end."""

_DATA, _PAD, _NAK, _SM, _HEARTBEAT, _MALFORMED = DATA, PAD, NAK, SM, HEARTBEAT, MALFORMED
_HEADER = 32
FREE_BITS = 8 * 24
"""Bits of a frame before its reserved value and payload, which are the application's affair."""


class Audit(NamedTuple):
    """The streams of a world that are published, read and checked by its kernels."""

    streams: Any  # STREAM[n]; none where applications in Python do that
    appenders: Any  # APPENDER[n], the driver's own state of each publication
    lengths: Any  # int64: of all messages, stream after stream
    payload: Any  # uint8
    frames: Any  # EXPECTED_FRAME: stream after stream
    disturbed: Any  # uint8, one a frame: kept from arriving whole in its turn at least once
    bent: Any  # uint8, one a frame: bits that were flipped at once behind its place; 0 for none
    state: Any  # int64, one cell each


@bare_kernel
def violate(audit: Audit, code: int, stream: int, place: int, expected: int, found: int) -> None:
    """Keep a violation, if it is the first."""
    state = audit.state
    if state[CODE] == NONE:
        state[CODE] = code
        state[WHERE] = stream
        state[PLACE] = place
        state[EXPECTED] = expected
        state[FOUND] = found


@bare_kernel
def position_of(stream: Any, term_id: int, term_offset: int) -> int:
    """The stream position of a place; terms before the initial one lie far ahead."""
    count = int(term_id - stream["initial_term_id"]) & 0xFFFFFFFF
    return int(count * stream["term_length"] + term_offset)


@bare_kernel
def find(audit: Audit, from_host: int, session_id: int, stream_id: int) -> int:
    """The stream that a host sends under these ids, or -1."""
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if (
            stream["is_open"]
            and stream["from_host"] == from_host
            and stream["session_id"] == session_id
            and stream["stream_id"] == stream_id
        ):
            return index
    return -1


@bare_kernel
def on_sent(audit: Audit, host: int, buf: Any, at: int, length: int) -> None:
    """Check a datagram that left a host."""
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
            stream["status_top"] = max(stream["status_top"], consumed)


@bare_kernel
def _check_window(audit: Audit, index: int, buf: Any, at: int, length: int) -> None:
    """Data may end where an SM allowed; of a PAD only the header is sent."""
    stream = audit.streams[index]
    first = position_of(stream, i32_le(buf, at + 20), i32_le(buf, at + 8))
    if first + length > stream["window_end"]:
        violate(audit, BEYOND_WINDOW, index, first, stream["window_end"], first + length)


@bare_kernel
def _check_nak(audit: Audit, index: int, buf: Any, at: int) -> None:
    stream = audit.streams[index]
    stream["naks_out"] += 1
    offset, wanted = i32_le(buf, at + 20), i32_le(buf, at + 24)
    first = position_of(stream, i32_le(buf, at + 16), offset)
    if not stream["is_reliable"]:
        violate(audit, NAK_UNRELIABLE, index, first, 0, wanted)
        return
    if first + wanted > stream["wire_top"]:
        violate(audit, NAK_AHEAD, index, first, stream["wire_top"], first + wanted)
    # The conductor saw the hole in this turn, before what had landed was filed.
    if first != stream["hole_at"] or first + wanted > stream["hole_end"]:
        violate(audit, NAK_NO_HOLE, index, first, stream["hole_at"], first + wanted)


@bare_kernel
def on_landed(audit: Audit, host: int, buf: Any, at: int, length: int) -> None:
    """Learn from a datagram that reached a host what its driver may know from now on."""
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


@bare_kernel
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
        return  # No sound sender is there: forged, or damaged on its way.
    stream["wire_top"] = max(stream["wire_top"], end)
    if ends_in_pad and end > stream["status_top"] + stream["term_length"] // 2:
        while first < end:
            _mark(audit, index, first)
            first += aligned(i32_le(buf, at))
            at += aligned(i32_le(buf, at))


@bare_kernel
def check_counters(audit: Audit, index: int, near: Any, far: Any) -> None:
    """Look at the counters of a stream's sending host and of its receiving host."""
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


@bare_kernel
def is_over(audit: Audit) -> bool:
    """Whether the shell must look: there is a violation, or the goal is reached."""
    state = audit.state
    if state[CODE] != NONE:
        return True
    if state[GOAL] == NO_GOAL:
        return False
    for index in range(audit.streams.size):
        stream = audit.streams[index]
        if state[GOAL] == GATES and stream["next_message"] < stream["gate"]:
            return False
        if state[GOAL] == ENDS and stream["position"] < stream["end_position"]:
            return False
    return True


@bare_kernel
def note_decisions(audit: Audit, engine: Engine) -> None:
    """Mark the frames that the middlebox has kept from arriving in their turn."""
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
        frame = _mark(audit, index, decision["position"])
        if frame >= 0 and action == CORRUPT and decision["detail"] >= FREE_BITS:
            bits = engine.rules[decision["rule"]]["bits"]
            audit.bent[frame] = max(audit.bent[frame], bits)


@bare_kernel
def _mark(audit: Audit, index: int, position: int) -> int:
    """Note that a planned frame was disturbed. Returns which, or -1 where none begins."""
    stream = audit.streams[index]
    low, high = stream["next_frame"], stream["frame_end"]
    while low < high:
        middle = (low + high) // 2
        if audit.frames[middle]["position"] < position:
            low = middle + 1
        else:
            high = middle
    if low < stream["frame_end"] and audit.frames[low]["position"] == position:
        audit.disturbed[low] = 1
        return int(low)
    return -1


def make_audit(streams: int, messages: int, frames: int, payload: Any) -> Audit:
    """An audit with room for so many streams, messages and planned frames."""
    return Audit(
        streams=np.zeros(streams, dtype=STREAM),
        appenders=np.zeros(streams, dtype=APPENDER),
        lengths=np.zeros(messages, dtype=np.int64),
        payload=payload,
        frames=np.zeros(frames, dtype=EXPECTED_FRAME),
        disturbed=np.zeros(frames, dtype=np.uint8),
        bent=np.zeros(frames, dtype=np.uint8),
        state=np.zeros(8, dtype=np.int64),
    )


def violation_text(audit: Audit) -> str:
    """The violation in words; empty when there is none."""
    code, stream, place, expected, found = (int(each) for each in audit.state[: FOUND + 1])
    if code == NONE:
        return ""
    where = f"stream {stream}" if stream >= 0 else "a host"
    return f"{CODES[code]} ({where}, position {place}: expected {expected}, found {found})"
