"""Requests of every template with valid and invalid values, and damaged encodings of them.

The control session id of a request is `SESSION`, which is replaced when the request is sent: a
replay has other sessions than the attack.
"""

import random
import struct
from dataclasses import fields
from typing import Any, cast

from windtunnel.driver.archive.protocol import replication, requests, responses
from windtunnel.driver.archive.protocol.codec import BY_TEMPLATE_ID, decode, encode
from windtunnel.driver.archive.protocol.layout import Message

SESSION = 0x5E55105E55105E55
SESSION_BYTES = struct.pack("<q", SESSION)
FRAME, TERM = 1_056, 65_536
_REQUEST_MODULES = (requests.__name__, replication.__name__)
_MODULES = (*_REQUEST_MODULES, responses.__name__)
REQUESTS = [kind for kind in BY_TEMPLATE_ID.values() if kind.__module__ in _REQUEST_MODULES]
READABLE = [kind for kind in REQUESTS if kind is not requests.CloseSessionRequest]
"""Requests of a session that stays open."""
ANY = [kind for kind in BY_TEMPLATE_ID.values() if kind.__module__ in _MODULES]
NUMBERS = [
    0, 1, 2, -1, -2, 5, 31, 32, FRAME, 10 * FRAME, TERM, 2 * TERM, -32, 1_001,
    (1 << 31) - 1, -(1 << 31), (1 << 62), (1 << 63) - 1, -(1 << 63),
]  # fmt: skip
TEXTS = [
    "", "aeron:ipc?term-length=64k", "aeron:ipc", "aeron:udp?endpoint=127.0.0.9:20900", "rubbish",
    "aeron:udp", "=|=", "\0", "aeron:ipc?alias=" + "x" * 3_000, "x" * 5_000,
    "aeron:ipc?session-id=rubbish", "aeron:udp?control-mode=response|control=127.0.0.9:20901",
    "aeron-spy:aeron:ipc", "aeron:ipc?term-length=3|mtu=7|linger=-1", "aeron:udp?endpoint=[::1]:1",
    "aeron:ipc?rcv-wnd=9999999999999999999999", "aeron:udp?endpoint=224.20.30.39:20902",
    "aeron:udp?endpoint=no-such-host.invalid:1", "\x1b]0;x\x07",
]  # fmt: skip
RECORDING_FIELDS = ("recording_id", "src_recording_id", "dst_recording_id")


def any_request(
    chance: random.Random, kind: type[Message], session_id: int, texts: list[str] = TEXTS
) -> Message:
    """Return a request with a valid encoding, and valid or invalid values."""
    values: dict[str, Any] = {}
    codes = {field.name: field for field in kind.LAYOUT.fixed}
    for field in fields(cast("Any", kind)):
        fixed = codes.get(field.name)
        if field.name == "control_session_id":
            values[field.name] = session_id
        elif fixed is None:
            is_text = next(each for each in kind.LAYOUT.variable if each.name == field.name).is_text
            text = chance.choice(texts)
            values[field.name] = text if is_text else text.encode()
        elif fixed.enumeration is not None:
            values[field.name] = chance.choice(list(fixed.enumeration))
        else:
            number = chance.choice(NUMBERS)
            if fixed.code == "i":
                number = (number + (1 << 31)) % (1 << 32) - (1 << 31)
            values[field.name] = number
    return kind(**values)


def damaged(chance: random.Random, content: bytes) -> bytes:
    """Return the bytes of a message, changed, cut or lengthened."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        way = chance.randrange(5)
        at = chance.randrange(len(made)) if made else 0
        if way == 0 and made:
            made[at] ^= 1 << chance.randrange(8)
        elif way == 1 and made:
            made[at] = chance.choice((0, 0xFF, 0x7F, 0x80))
        elif way == 2:
            del made[at:]
        elif way == 3:
            made += chance.randbytes(chance.randint(1, 64))
        elif len(made) >= 4:
            at = chance.randrange(len(made) - 3)
            made[at : at + 4] = chance.choice((b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\0\0\0@"))
    return bytes(made)


def hostile_message(chance: random.Random) -> bytes:
    """Return the next message of an attack: half of them have a valid encoding."""
    if chance.randrange(2):
        return encode(any_request(chance, chance.choice(READABLE), SESSION))
    return damaged(chance, encode(any_request(chance, chance.choice(ANY), SESSION)))


def names_recording(content: bytes, guarded: set[int]) -> bool:
    """Return whether a message names one of these recordings. A client may change all recordings,
    so the attack must not name those that are checked.
    """
    try:
        message = decode(content)
    except Exception:
        # The message is damaged: no archive executes it.
        return False
    return any(getattr(message, name, None) in guarded for name in RECORDING_FIELDS)
