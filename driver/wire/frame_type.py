"""Type codes and flag bits of all frames.

Source: driver-protocol 1.1, 1.2 to 1.9.
"""

VERSION = 0
"""The only frame version."""

PAD = 0x00
DATA = 0x01
NAK = 0x02
SM = 0x03
ERR = 0x04
SETUP = 0x05
RTTM = 0x06
RES = 0x07
RSP_SETUP = 0x0B

BEGIN = 0x80
"""DATA: the first fragment of a message."""
END = 0x40
"""DATA: the last fragment of a message."""
UNFRAGMENTED = BEGIN | END
EOS = 0x20
"""Heartbeat: the stream ended at this position."""
REVOKED = 0x10
"""Heartbeat: the stream was revoked; only together with EOS."""

SEND_RESPONSE_SETUP = 0x80
"""SETUP: the receiver must answer with a RSP_SETUP."""
GROUP = 0x40
"""SETUP: the channel has many receivers."""

SEND_SETUP = 0x80
"""SM: the receiver does not know the stream and requests a SETUP."""
SM_EOS = 0x40
"""SM: the receiver is finished with the stream."""

REPLY = 0x80
"""RTTM: the receiver must send the frame back."""
HAS_GROUP_TAG = 0x08
"""ERR: the group tag field is valid."""
SELF = 0x80
"""RES: the entry describes the sender of the datagram."""
