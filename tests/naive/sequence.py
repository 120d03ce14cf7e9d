"""Reference implementation of the check of numbered messages in a block of frames."""

import struct

PAD = 0


def check_block(
    block: bytes, due: dict[int, int], message_length: int, rows: list[bytes]
) -> tuple[str, int, int, dict[int, int]]:
    """Return `ok` or the error, the expected number, the value found, and the next number of each
    source. Message n must have the bytes of row n after its number, where the rows repeat.
    """
    due, at = dict(due), 0
    while at < len(block):
        length, _, _, kind = struct.unpack_from("<iBBH", block, at)
        if length < 32:
            return "broken frame", 0, length & 0xFFFFFFFF, due
        if kind != PAD:
            payload = block[at + 32 : at + length]
            if length - 32 != message_length or len(payload) < message_length:
                return "length", message_length, length - 32, due
            (word,) = struct.unpack_from("<q", payload)
            source, number = divmod(word, 1 << 40)
            if source not in due:
                return "sequence", due[0], word, due
            if number != due[source]:
                return "sequence", due[source], number, due
            if payload[8:message_length] != rows[number % len(rows)][8:message_length]:
                return "content", number, 0, due
            due[source] += 1
        at += -(-length // 32) * 32
    return "ok", 0, 0, due
