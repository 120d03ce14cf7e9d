"""The codes and flag bits of every frame, shared by the flyweights of this room.

Source: driver-protocol 1.1, 1.2 to 1.9.
"""

VERSION = 0
"""The only frame version there is."""

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
"""SETUP: answer with a RSP_SETUP."""
GROUP = 0x40
"""SETUP: the channel has many receivers."""

SEND_SETUP = 0x80
"""SM: the receiver does not know the stream and asks for a SETUP."""
SM_EOS = 0x40
"""SM: the receiver is finished with the stream."""

REPLY = 0x80
"""RTTM: please send this back."""
HAS_GROUP_TAG = 0x08
"""ERR: the group tag field counts."""
SELF = 0x80
"""RES: the entry describes the sender of the datagram."""
