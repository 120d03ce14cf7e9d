"""Extracts each stream's frames, and its receivers' status messages and NAKs, from a capture.

    capture --frames--> stream (session, stream id, sender)
                          geometry        term length, MTU: from a SETUP, else from frames
                          transmissions   DATA and PAD: time, position, length, payload
                          feedback        NAK and SM, from the receivers

Positions count from the start of the stream's first term. Only frames to the destination with the
most frames are used, since a multi-destination publication sends a copy to each destination.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, NAK, PAD, SETUP, SM
from windtunnel.harness.dissect.frames.flow import wrap_i32
from windtunnel.harness.replay.capture_frames import CaptureError, damage_of, read_frames

STREAMS_MAX = 16_384
"""Maximum number of streams in a capture."""
TERM_LENGTH_MIN = 1 << 16
DEFAULT_MTU = 1408
BEGIN, END, EOS = 0x80, 0x40, 0x20

_TERM_SPACE = 1 << 32
_IDENTIFICATIONS = 1 << 16
_STEP_MAX, _STEPS_MIN, _COUNTED_SHARE = 1_024, 16, 2
"""A sender's IP Identification field is considered a counter if at least half of its increments are
at most 1024, of at least 16.
"""

TRANSMISSION = np.dtype(
    [
        ("time_ns", "<i8"),
        ("position", "<i8"),
        ("length", "<i8"),  # in its term
        ("payload", "<i8"),  # bytes
        ("frame_type", "<i8"),
        ("flags", "<i8"),
        ("identification", "<i8"),  # IP Identification, or 0 if it is not a counter
    ]
)
FEEDBACK = np.dtype(
    [
        ("time_ns", "<i8"),
        ("frame_type", "<i8"),  # NAK, SM or HEARTBEAT
        ("position", "<i8"),  # first missing byte (NAK), consumed (SM) or sent (HEARTBEAT)
        ("length", "<i8"),  # missing bytes (NAK), or 0
        ("window", "<i8"),  # receiver window in bytes (SM), or 0
    ]
)


@dataclass(frozen=True)
class Stream:
    """The frames of one stream in one capture, with the feedback of its receivers."""

    session_id: int
    stream_id: int
    port: int
    """Destination port."""

    source: bytes
    """Source address."""

    initial_term_id: int
    term_length: int
    mtu: int
    has_setup: bool
    transmissions: NDArray[Any]
    """TRANSMISSION records of DATA and PAD frames, in capture order."""

    feedback: NDArray[Any]
    """FEEDBACK records of NAKs and status messages, in capture order."""

    has_ended: bool
    """Whether a frame had the end-of-stream flag."""

    heartbeats: NDArray[Any] = field(default_factory=lambda: np.zeros(0, dtype=FEEDBACK))
    """FEEDBACK records of heartbeats, which contain the sender's position, in capture order."""

    in_group: bool = False
    """Whether the stream was sent to a multicast group, whose members receive all retransmits."""

    @property
    def key(self) -> tuple[int, int]:
        return self.session_id, self.stream_id


def read_streams(file: Path, damage: list[str] | None = None) -> dict[tuple[int, int], Stream]:
    """Read a capture's streams. Returns them by session id and stream id, in the order of their
    first frames.

    Appends a sentence to `damage` if bytes of the capture are damaged, or missing at its end.
    Raises CaptureError if the file does not exist, is not a capture, or holds no Aeron stream.
    """
    rows, addresses, counts = read_frames(file)
    if damage is not None:
        damage += damage_of(file, counts)
    keys = _keys(rows)
    firsts = _firsts(keys, np.isin(rows["frame_type"], (DATA, PAD)))
    if len(firsts) > STREAMS_MAX:
        raise CaptureError(
            f"{file}: expected at most {STREAMS_MAX} streams, found {len(firsts)}: split the "
            "capture"
        )
    # The frames are sorted once, instead of searched for each stream.
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    found = {}
    for index in firsts:
        key = int(rows["session_id"][index]), int(rows["stream_id"][index])
        start, end = (np.searchsorted(ordered, keys[index], side) for side in ("left", "right"))
        mine = rows[order[start:end]]
        is_sent = np.isin(mine["frame_type"], (DATA, PAD, HEARTBEAT, SETUP))
        stream = _stream(key, mine[is_sent], mine[~is_sent], addresses)
        if len(stream.transmissions):
            found[key] = stream
    if not found:
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        raise CaptureError(f"{file}: expected an Aeron stream, found {summary or 'no packets'}")
    return found


def _keys(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each frame that identifies its stream."""
    found: NDArray[np.int64] = rows["session_id"] * _TERM_SPACE + rows["stream_id"]
    return found


def _firsts(keys: NDArray[np.int64], selected: NDArray[np.bool_]) -> list[int]:
    """Return the index of the first selected frame of each stream, in ascending order."""
    seen = np.flatnonzero(selected)
    _, first = np.unique(keys[seen], return_index=True)
    return [int(each) for each in np.sort(seen[first])]


def _stream(
    key: tuple[int, int], sent: NDArray[Any], back: NDArray[Any], addresses: list[bytes]
) -> Stream:
    filled = np.isin(sent["frame_type"], (DATA, PAD))
    ways = sent["destination"] * 65_536 + sent["destination_port"]
    values, counts = np.unique(ways[filled], return_counts=True)
    way = int(values[np.argmax(counts)])
    sent = sent[ways == way]
    setups = sent[sent["frame_type"] == SETUP]
    filled = np.isin(sent["frame_type"], (DATA, PAD))
    initial, term_length, mtu = _geometry(sent[filled], setups)
    transmissions = np.zeros(int(filled.sum()), dtype=TRANSMISSION)
    frames = sent[filled]
    transmissions["time_ns"], transmissions["flags"] = frames["time_ns"], frames["flags"]
    transmissions["frame_type"] = frames["frame_type"]
    transmissions["position"] = _positions(frames, initial, term_length)
    transmissions["length"] = (frames["frame_length"] + 31) & ~31
    transmissions["payload"] = np.where(
        frames["frame_type"] == DATA, frames["frame_length"] - 32, 0
    )
    transmissions["identification"] = _identifications(frames["ip_identification"])
    asked = back[np.isin(back["frame_type"], (NAK, SM))]
    feedback = np.zeros(len(asked), dtype=FEEDBACK)
    feedback["time_ns"], feedback["frame_type"] = asked["time_ns"], asked["frame_type"]
    feedback["position"] = _positions(asked, initial, term_length)
    feedback["length"] = np.where(asked["frame_type"] == NAK, asked["nak_length"], 0)
    feedback["window"] = np.where(asked["frame_type"] == SM, asked["window_bytes"], 0)
    # Frames with a position before the stream's start are forged. The sender has not sent them.
    transmissions = transmissions[transmissions["position"] >= 0]
    return Stream(
        session_id=key[0],
        stream_id=key[1],
        port=way % 65_536,
        source=addresses[int(sent["source"][0])],
        initial_term_id=initial,
        term_length=term_length,
        mtu=mtu,
        has_setup=len(setups) > 0,
        transmissions=transmissions,
        feedback=feedback,
        has_ended=bool((sent["flags"] & EOS).any()),
        heartbeats=_heartbeats(sent, initial, term_length),
        in_group=_is_group(addresses[way // 65_536]),
    )


def _heartbeats(sent: NDArray[Any], initial: int, term_length: int) -> NDArray[Any]:
    rows = sent[sent["frame_type"] == HEARTBEAT]
    found = np.zeros(len(rows), dtype=FEEDBACK)
    found["time_ns"], found["frame_type"] = rows["time_ns"], HEARTBEAT
    found["position"] = _positions(rows, initial, term_length)
    return found


def _is_group(address: bytes) -> bool:
    found = IPv6Address(address)
    return (found.ipv4_mapped or found).is_multicast


def _identifications(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the packets' IP Identification values, or zeros if they do not increase like a
    counter.
    """
    steps = np.diff(numbers) % _IDENTIFICATIONS
    steps = steps[steps > 0]
    counted = np.count_nonzero(steps <= _STEP_MAX)
    is_counter = len(steps) >= _STEPS_MIN and counted * _COUNTED_SHARE >= len(steps)
    found: NDArray[np.int64] = numbers.astype(np.int64) if is_counter else np.zeros_like(numbers)
    return found


def _geometry(frames: NDArray[Any], setups: NDArray[Any]) -> tuple[int, int, int]:
    """Return a stream's initial term id, term length and MTU from a SETUP frame. Without a SETUP
    frame, return the smallest values that fit the stream's frames.
    """
    if len(setups):
        summary = setups[0]
        return int(summary["initial_term_id"]), int(summary["term_length"]), int(summary["mtu"])
    ends = frames["term_offset"] + frames["frame_length"]
    longest = int(ends.max())
    length = max(TERM_LENGTH_MIN, 1 << (longest - 1).bit_length())
    first = int(frames["term_id"][0])
    terms = wrap_i32(frames["term_id"] - first)
    mtu = max(
        DEFAULT_MTU,
        (int(frames["frame_length"][frames["frame_type"] == DATA].max(initial=0)) + 31) & ~31,
    )
    return int(wrap_i32(np.array([first + int(terms.min())]))[0]), length, mtu


def _positions(frames: NDArray[Any], initial: int, term_length: int) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (
        wrap_i32(frames["term_id"] - initial) * term_length + frames["term_offset"]
    )
    return found
