"""Builds forged frames with scapy, and lists the fields to fill in when a frame is sent.

    ForgedCase --scapy--> bytes, with zeros in the fields that depend on the stream:
                          session id, stream id, term id, term offset, receiver id

    Patch(offset, source)    four or eight bytes to copy from the frame that it follows

The bytes are built before the first datagram arrives, because scapy is slow.
"""

from dataclasses import dataclass
from typing import Literal

from scapy.packet import Packet

from windtunnel.harness.dissect.frames import layers, layout
from windtunnel.harness.scenario.resolved.fault_case import ForgedCase

Source = Literal[
    "session_id", "stream_id", "term_id", "term_offset", "receiver_id", "initial_term_id",
    "term_length",
]  # fmt: skip
FILLER = 0xFD
_SOURCES: dict[str, Source] = {
    "session_id": "session_id",
    "stream_id": "stream_id",
    "term_id": "term_id",
    "active_term_id": "term_id",
    "consumption_term_id": "term_id",
    "term_offset": "term_offset",
    "consumption_term_offset": "term_offset",
    "receiver_id": "receiver_id",
    "initial_term_id": "initial_term_id",
    "term_length": "term_length",
}
"""Field name in `layout` -> the source from which the field is filled in when the frame is sent."""


@dataclass(frozen=True)
class Patch:
    """A field of a forged frame that is filled in when the frame is sent."""

    offset: int
    width: int
    source: Source


@dataclass(frozen=True)
class ForgedFrame:
    """A forged frame: its bytes, and the fields to fill in when it is sent."""

    raw: bytes
    patches: tuple[Patch, ...]


def build_frame(forged: ForgedCase, mtu: int) -> ForgedFrame:
    """Build a forged frame. `mtu` is the MTU that a SETUP frame contains."""
    frame = _frame(forged, mtu)
    frame.version = forged.version
    if forged.flags is not None:
        frame.flags = forged.flags
    if forged.length is not None and forged.type != "NAK":
        frame.frame_length = forged.length
    table = layout.BY_TYPE_CODE[frame.type]
    patches = [
        Patch(field.offset, field.width, _SOURCES[field.name])
        for field in table.fields
        if field.name in _SOURCES
    ]
    return ForgedFrame(bytes(frame), tuple(patches))


def _payload(forged: ForgedCase) -> bytes:
    """Return the payload of a forged frame: filler bytes, or empty DATA frames that claim to be at
    the start of a term.
    """
    if not forged.holds_frames:
        return bytes([FILLER]) * forged.payload_length
    inner = bytes(layers.AeronData(data=b""))
    return inner * (forged.payload_length // len(inner))


def _frame(forged: ForgedCase, mtu: int) -> Packet:
    """Return the scapy layer of a forged frame."""
    if forged.type == "DATA":
        return layers.AeronData(data=_payload(forged))
    if forged.type == "PAD":
        return layers.AeronPad()
    if forged.type == "HEARTBEAT":
        return layers.AeronHeartbeat()
    if forged.type == "SETUP":
        return layers.AeronSetup(mtu=mtu)
    if forged.type == "SM":
        return layers.AeronStatusMessage(receiver_window=forged.window_bytes)
    if forged.type == "NAK":
        return layers.AeronNak(length=32 if forged.length is None else forged.length)
    if forged.type == "RTTM":
        return layers.AeronRttMeasurement()
    return layers.AeronError()
