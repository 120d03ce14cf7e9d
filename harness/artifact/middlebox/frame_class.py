"""Names and codes under which the ledger, the decision log and the judge count frames.

They are Aeron's type codes, with three classes of our own that have none: HEARTBEAT (DATA whose
frame_length is 0), MALFORMED and OTHER. How one UDP datagram on an Aeron port splits into frames,
for every counter of the harness:

    shorter than the fixed part of its    one MALFORMED
      type, version not 0, or
      frame_length negative
    DATA with frame_length 0,             one HEARTBEAT
      in a datagram of 32 bytes
    DATA or PAD                           frames, each aligned to 32 bytes; a PAD travels as its
                                          32-byte header and ends the datagram
    any other type                        one frame, whatever follows it

A rest of a DATA datagram that is no whole frame is one MALFORMED: less than 32 bytes left,
frame_length under 32, a DATA frame that aligned is longer than what is left, bytes after a PAD,
another type, version or sign.
"""

PAD = 0x00
DATA = 0x01
NAK = 0x02
SM = 0x03
ERR = 0x04
SETUP = 0x05
RTTM = 0x06
RES = 0x07
RSP_SETUP = 0x0B
HEARTBEAT = 0x0100
MALFORMED = 0x0101
OTHER = 0x0102
"""A well-formed header with a type that no open driver speaks."""

NAMES: dict[int, str] = {
    PAD: "PAD",
    DATA: "DATA",
    NAK: "NAK",
    SM: "SM",
    ERR: "ERR",
    SETUP: "SETUP",
    RTTM: "RTTM",
    RES: "RES",
    RSP_SETUP: "RSP_SETUP",
    HEARTBEAT: "HEARTBEAT",
    MALFORMED: "MALFORMED",
    OTHER: "OTHER",
}
CODES: dict[str, int] = {name: code for code, name in NAMES.items()}
POSITIONAL = (DATA, PAD)
"""Frames that have a position in a stream; heartbeats tell one but occupy none."""
