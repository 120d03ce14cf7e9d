"""Reference implementation of a block of a replay: the frames that it sends and changes."""

import struct
import zlib

from tests.unit.driver.archive.storage import own_recording as own

PAD = 0


def readdress(
    content: bytes, position: int, until: int, *, mtu: int, ids: tuple[int, int], is_checked: bool
) -> tuple[bytes, str]:
    """Return the frames of `content` that are sent, with other session and stream ids, and why no
    more are: "more", "end", "padding" or the first fault found.
    """
    sent = b""
    while True:
        rest = content[len(sent) :]
        at = position + len(sent)
        if len(rest) < 32 or (sent and len(sent) >= until):
            return sent, "more"
        length, version, flags, kind, offset, session, stream, term, reserved = own.FRAME.unpack(
            rest[:32]
        )
        if length <= 0:
            return sent, "end"
        whole = -(-length // 32) * 32
        if kind not in (0, 1):
            return sent, "type"
        if length < 32 or at % own.TERM + whole > own.TERM or (length > mtu and kind != PAD):
            return sent, "length"
        if offset != at % own.TERM:
            return sent, "offset"
        if term != own.term_id(at):
            return sent, "term"
        if stream != own.STREAM_ID:
            return sent, "stream"
        if kind == PAD:
            return sent, "padding"
        if whole > len(rest):
            return sent, "more"
        body = rest[32:whole]
        if is_checked and struct.pack("<i", session) != struct.pack("<I", zlib.crc32(body)):
            return sent, "checksum"
        sent += own.FRAME.pack(length, version, flags, kind, offset, *ids, term, reserved) + body
