"""The state of the simulated streams: the progress of each stream, and the first violation.

    Audit   streams     ids, progress of both ends, addresses of logs and counters
            frames      the expected frames, and what the link did to each
            state       the first violation, if any, and the goal that Python waits for

This module contains a message for each violation. `stream_audit` detects them.
"""

from typing import Any, NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer.appender import APPENDER
from windtunnel.harness.dissect.driver_files.expected_log import EXPECTED_FRAME

STREAM = np.dtype(
    [
        ("is_open", "<i8"),  # whether its datagrams are checked: ids and start are known
        ("is_flowing", "<i8"),  # whether it is published and read: logs and counters are known
        ("is_succeeded", "<i8"),  # whether a later image replaced its image, which ends the checks
        ("from_host", "<i8"),  # 0 or 1
        ("session_id", "<i8"),
        ("stream_id", "<i8"),
        ("initial_term_id", "<i8"),
        ("term_length", "<i8"),
        ("is_reliable", "<i8"),
        ("is_nak_all_gaps", "<i8"),  # the receiver sends NAKs for all gaps at once
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
        ("burst", "<i8"),  # maximum number of messages offered in one turn
        ("next_message", "<i8"),  # in `lengths`
        ("gate", "<i8"),  # message before which the publisher waits for the recovery phase
        ("message_end", "<i8"),
        ("sent_bytes", "<i8"),
        ("next_frame", "<i8"),  # in `frames`
        ("frame_end", "<i8"),
        ("position", "<i8"),  # up to which the subscriber has read
        ("end_position", "<i8"),
        ("hwm", "<i8"),  # last seen value
        ("rcv_pos", "<i8"),
        ("snd_pos", "<i8"),
        ("wire_top", "<i8"),  # highest position in a datagram that reached the receiver
        ("window_end", "<i8"),  # highest position that an SM allowed the sender
        ("status_top", "<i8"),  # highest consumption position in an SM, from join on
        ("gap_at", "<i8"),  # first byte missing from the image at the end of the last turn
        ("gap_end", "<i8"),  # end of that gap: start of a frame, or the term's end
        ("naks_out", "<i8"),  # number of NAKs that left the receiver
        ("naks_in", "<i8"),  # number of NAKs that reached the sender
        ("gap_filled", "<i8"),  # number of frames that gap fills covered
        ("corrupted", "<i8"),  # number of frames delivered with bits that the link had flipped
        ("visit_frames", "<i8"),  # maximum number of frames that the reader takes at once
        ("rest_ns", "<i8"),  # the reader's pause after each read, 0 for none
        ("rested_ns", "<i8"),  # time of its next read
    ]
)

# Violations.
NONE = 0
CODES = {
    1: "a frame in the image differs from the expected frame",
    2: "the image's bytes differ from the publication's",
    3: "the image's bytes differ from the payload's",
    4: "a PAD covers part of a frame",
    5: "a PAD covers a frame that the link did not disturb",
    6: "a PAD replaced frames of a reliable stream",
    7: "rcv-hwm decreased",
    8: "rcv-pos decreased",
    9: "rcv-hwm is below rcv-pos",
    10: "rcv-hwm exceeds the highest position received",
    11: "data was sent past the end of the receiver window",
    12: "an unreliable stream sent a NAK",
    13: "a NAK does not start at the first gap, or extends past it",
    14: "a NAK extends past the highest position received",
    15: "a datagram is malformed",
    16: "snd-pos decreased",
    17: "an offer failed permanently",
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
    NAK_NO_GAP,
    NAK_AHEAD,
    MALFORMED_SENT,
    SND_POS_FELL,
    OFFER_REFUSED,
) = CODES

# Cells of `state`.
CODE, WHERE, PLACE, EXPECTED, FOUND, DECISIONS_SEEN, FLIPS, GOAL = range(8)
"""The first violation (five cells); number of the middlebox's decisions processed; number of
datagrams still to corrupt; the goal that Python waits for.
"""
NO_GOAL, GATES, ENDS = range(3)
"""Goals: none; every publisher at its gate; every reader at the end of its stream."""


class Audit(NamedTuple):
    """The state of the streams that compiled kernels publish, read and check in a swarm trial."""

    streams: Any  # STREAM[n]; none if applications in Python do that
    appenders: Any  # APPENDER[n], the driver's own state of each publication
    lengths: Any  # int64: of all messages, stream after stream
    payload: Any  # uint8, read-only
    frames: Any  # EXPECTED_FRAME: stream after stream
    disturbed: Any  # uint8 per frame: lost, late or corrupted at least once
    landed_starts: Any  # int64 per frame: start of the first datagram with it
    landed_ends: Any  # int64 per frame: end of that datagram; 0 for none
    flipped_bits: (
        Any  # uint8 per frame: adjacent bits flipped together after the header; 0 for none
    )
    state: Any  # int64, one cell each


@kernel
def violate(audit: Audit, code: int, stream: int, place: int, expected: int, found: int) -> None:
    """Record a violation of an invariant, unless an earlier violation was recorded."""
    state = audit.state
    if state[CODE] == NONE:
        state[CODE] = code
        state[WHERE] = stream
        state[PLACE] = place
        state[EXPECTED] = expected
        state[FOUND] = found


@kernel
def position_of(stream: Any, term_id: int, term_offset: int) -> int:
    """Return the stream position of a term id and offset. A term before the initial term yields a
    very large position.
    """
    count = int(term_id - stream["initial_term_id"]) & 0xFFFFFFFF
    return int(count * stream["term_length"] + term_offset)


@kernel
def find(audit: Audit, from_host: int, session_id: int, stream_id: int) -> int:
    """Return the index of the stream with this session id and stream id that a host sends, or -1 if
    there is none.
    """
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


@kernel
def mark(audit: Audit, index: int, position: int) -> int:
    """Mark the expected frame at a position as lost, late or damaged on the link. Returns the
    frame's index, or -1 if no frame starts at the position.
    """
    frame = frame_at(audit, index, position)
    if frame >= 0:
        audit.disturbed[frame] = 1
    return frame


@kernel
def first_frame_from(audit: Audit, index: int, position: int) -> int:
    """Return the index of the first expected frame at or after a position that was not yet read,
    or the end of the stream's frames.
    """
    low, high = audit.streams[index]["next_frame"], audit.streams[index]["frame_end"]
    while low < high:
        middle = (low + high) // 2
        if audit.frames[middle]["position"] < position:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def frame_at(audit: Audit, index: int, position: int) -> int:
    """Return the index of the expected frame that starts at a position, or -1."""
    frame = first_frame_from(audit, index, position)
    stream = audit.streams[index]
    if frame < stream["frame_end"] and audit.frames[frame]["position"] == position:
        return frame
    return -1


@kernel
def needs_shell(audit: Audit) -> bool:
    """Return whether the kernel must return to Python because of a violation or because the streams
    have reached Python's goal.
    """
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


def make_audit(streams: int, messages: int, frames: int, payload: Any) -> Audit:
    """Create an audit for the given numbers of streams, messages and expected frames."""
    # Always read-only, so that runs and trials have the same compiled kernels.
    constant = payload.view()
    constant.flags.writeable = False
    return Audit(
        streams=np.zeros(streams, dtype=STREAM),
        appenders=np.zeros(streams, dtype=APPENDER),
        lengths=np.zeros(messages, dtype=np.int64),
        payload=constant,
        frames=np.zeros(frames, dtype=EXPECTED_FRAME),
        disturbed=np.zeros(frames, dtype=np.uint8),
        landed_starts=np.zeros(frames, dtype=np.int64),
        landed_ends=np.zeros(frames, dtype=np.int64),
        flipped_bits=np.zeros(frames, dtype=np.uint8),
        state=np.zeros(8, dtype=np.int64),
    )


def violation_text(audit: Audit) -> str:
    """Format the recorded violation, or return an empty string if there is none."""
    code, stream, place, expected, found = (int(each) for each in audit.state[: FOUND + 1])
    if code == NONE:
        return ""
    where = f"stream {stream}" if stream >= 0 else "a host"
    return f"{CODES[code]} ({where}, position {place}: expected {expected}, found {found})"
