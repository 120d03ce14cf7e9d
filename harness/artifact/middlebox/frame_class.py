"""Frame classes: the categories in which the ledger, the decision log and the judge count frames.

They are Aeron's type codes, plus three classes without one: HEARTBEAT (DATA whose frame_length is
0), MALFORMED and OTHER. Every counter of the harness splits one UDP datagram on an Aeron port into
frames as follows:

    shorter than the fixed part of its    one MALFORMED
      type, version not 0, or
      frame_length negative
    DATA with frame_length 0,             one HEARTBEAT
      in a datagram of 32 bytes
    DATA or PAD                           frames, each aligned to 32 bytes; a PAD travels as its
                                          32-byte header and ends the datagram
    any other type                        one frame, regardless of what follows it

The rest of a DATA datagram that is not a complete frame is one MALFORMED: less than 32 bytes left,
frame_length under 32, a DATA frame whose aligned length exceeds the rest, bytes after a PAD, or
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
"""A well-formed header whose type no open-source driver uses."""

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
"""Classes of frames that occupy a position. A heartbeat has a position but occupies none."""
