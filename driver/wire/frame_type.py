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
"""DATA flag: the frame is the first fragment of a message."""
END = 0x40
"""DATA flag: the frame is the last fragment of a message."""
UNFRAGMENTED = BEGIN | END
EOS = 0x20
"""Heartbeat flag: the stream ended at this position."""
REVOKED = 0x10
"""Heartbeat flag: the stream was revoked. Only valid together with EOS."""

SEND_RESPONSE_SETUP = 0x80
"""SETUP flag: the receiver must answer with an RSP_SETUP."""
GROUP = 0x40
"""SETUP flag: the channel has many receivers."""

SEND_SETUP = 0x80
"""SM flag: the receiver requests a SETUP, because it has no image of the stream."""
SM_EOS = 0x40
"""SM flag: the receiver is finished with the stream."""

REPLY = 0x80
"""RTTM flag: the receiver must send the frame back."""
HAS_GROUP_TAG = 0x08
"""ERR flag: the group tag field is valid."""
SELF = 0x80
"""RES flag: the entry describes the sender of the datagram."""
