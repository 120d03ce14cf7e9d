"""Compiled kernel that counts and sums a batch's frames, grouped by key fields.

    frame --> key --> slot --> its row of totals: counts, sums, minima and maxima

A row is found by hashing its key, unless a frame has the same key as the previous frame, which is
the usual case. Fields that only some frame types have (a term, the fields of a SETUP) are summed
for every frame: the type is part of the key, so either all frames of a row have the field or none.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, PAD
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, aligned

END_FLAGS = 0x30
"""Flags that end a stream: EOS and REVOKED."""

TOTAL = np.dtype(
    [
        ("point", "<i8"),
        ("session_id", "<i8"),
        ("stream_id", "<i8"),
        ("source", "<i8"),
        ("destination", "<i8"),
        ("frame_type", "<i8"),  # a code of frame_class
        ("term_id", "<i8"),
        ("size_class", "<i8"),  # frame_length is at most 2 to this power
        ("end_flags", "<i8"),  # of a heartbeat
        ("frames", "<i8"),
        ("payload_bytes", "<i8"),
        ("span_bytes", "<i8"),
        ("first_ns", "<i8"),
        ("last_ns", "<i8"),
        ("least_offset", "<i8"),
        ("end_offset", "<i8"),
        ("least_initial", "<i8"),
        ("most_initial", "<i8"),
        ("term_length", "<i8"),
        ("mtu", "<i8"),
    ]
)
_FREE = -1
_MULTIPLIER = 0x9E3779B1


@kernel
def _has_key(total: Any, key: Any) -> bool:
    return bool(
        total["term_id"] == key[6]
        and total["frame_type"] == key[5]
        and total["size_class"] == key[7]
        and total["stream_id"] == key[2]
        and total["session_id"] == key[1]
        and total["destination"] == key[4]
        and total["source"] == key[3]
        and total["end_flags"] == key[8]
        and total["point"] == key[0]
    )


@kernel
def _begin(total: Any, key: Any, time_ns: int, offset: int, initial: int) -> None:
    """Initialize the row of totals for a new key."""
    total["point"], total["session_id"], total["stream_id"] = key[0], key[1], key[2]
    total["source"], total["destination"], total["frame_type"] = key[3], key[4], key[5]
    total["term_id"], total["size_class"], total["end_flags"] = key[6], key[7], key[8]
    total["frames"], total["payload_bytes"], total["span_bytes"] = 0, 0, 0
    total["term_length"], total["mtu"] = 0, 0
    total["first_ns"], total["last_ns"] = time_ns, time_ns
    total["least_offset"], total["end_offset"] = offset, offset
    total["least_initial"], total["most_initial"] = initial, initial


@kernel
def _slot_of(key: Any, slots: Any, totals: Any) -> int:
    """Return the hash slot of a key's row, or a free slot."""
    mixed = np.int64(0)
    for part in key:
        mixed = (mixed ^ part) * np.int64(_MULTIPLIER)
        mixed ^= mixed >> 31
    slot = mixed & (len(slots) - 1)
    while slots[slot] != _FREE and not _has_key(totals[slots[slot]], key):
        slot = (slot + 1) & (len(slots) - 1)
    return int(slot)


@kernel
def _size_class(length: int) -> int:
    found = 0
    while (1 << found) < length:
        found += 1
    return found


@kernel
def sum_up(
    points: Any, sessions: Any, streams: Any, sources: Any, destinations: Any, kinds: Any,
    terms: Any, offsets: Any, lengths: Any, flags: Any, times_ns: Any, initials: Any,
    term_lengths: Any, mtus: Any, slots: Any, totals: Any,
) -> int:  # fmt: skip
    """Count and sum frames for each combination of key fields. A field that a frame's type does not
    have is 0.

    Shapes:  points to flags, initials to mtus int32[n], except sources and destinations int64[n],
             which may be any numbers that distinguish endpoints; kinds codes of frame_class;
             times_ns int64[n];
             slots int32[m], free, m a power of two above n; totals TOTAL[n], written
    Returns: the number of rows of totals
    """
    slots[:] = _FREE
    count = 0
    at = 0
    for index in range(len(kinds)):
        kind, length = kinds[index], lengths[index]
        size_class, span, payload, end_flags = 0, 0, 0, 0
        if kind in (DATA, PAD):
            size_class, span = _size_class(length), aligned(length)
            payload = length - DATA_HEADER_LENGTH if kind == DATA else 0
        elif kind == HEARTBEAT:
            end_flags = flags[index] & END_FLAGS
        key = (
            np.int64(points[index]), np.int64(sessions[index]), np.int64(streams[index]),
            np.int64(sources[index]), np.int64(destinations[index]), np.int64(kind),
            np.int64(terms[index]), np.int64(size_class), np.int64(end_flags),
        )  # fmt: skip
        if index == 0 or not _has_key(totals[at], key):
            slot = _slot_of(key, slots, totals)
            at = slots[slot]
            if at == _FREE:
                at = slots[slot] = count
                count += 1
                _begin(totals[at], key, times_ns[index], offsets[index], initials[index])
        total = totals[at]
        total["frames"] += 1
        total["payload_bytes"] += payload
        total["span_bytes"] += span
        total["first_ns"] = min(total["first_ns"], times_ns[index])
        total["last_ns"] = max(total["last_ns"], times_ns[index])
        total["least_offset"] = min(total["least_offset"], offsets[index])
        total["end_offset"] = max(total["end_offset"], offsets[index] + span)
        total["least_initial"] = min(total["least_initial"], initials[index])
        total["most_initial"] = max(total["most_initial"], initials[index])
        total["term_length"] = max(total["term_length"], term_lengths[index])
        total["mtu"] = max(total["mtu"], mtus[index])
    return count
