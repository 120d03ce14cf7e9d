"""Damages the contents of files, with knowledge of their structure.

    bytes    flipped bits, boundary values, ranges removed, repeated, exchanged, zeroed; truncation
    JSON     values of other types, huge numbers, deep nesting, removed and repeated keys
    YAML     the same in lines; anchors, tags and control characters
    gz, xz   the contents damaged and compressed again, or the compressed bytes; long runs of zeros
    path     a FIFO, a directory, a link to a file or out of the folder in place of the file

Equal random generators and equal contents lead to equal damage.
"""

import gzip
import json
import lzma
import random
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

FILE, LINK, FIFO, FOLDER, ABSENT = "file", "link", "fifo", "folder", "absent"
"""What is in the place of a damaged file. The content of a link is the name in `LINKS`."""
LINKS = ("canary", "nowhere", "itself")
EDGES = (
    0, 1, -1, 2, 7, 31, 32, 63, 64, 127, 128, 255, 256, 1_408, 4_095, 4_096, 65_535, 65_536,
    (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, -(1 << 31), 1 << 32, 1 << 40,
    (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
NUMBERS = (
    "0", "-1", "1", "2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e308", "1e999", "-0.0",
    "0.1", "1e-320", "NaN", "Infinity", "-Infinity", "9" * 400, "9" * 5_000,
)  # fmt: skip
TEXTS = (
    "", "x", "a" * 3_000, "\x1b]0;title\x07\x1b[2J", "\0", "\ud800", "\u202e", "../../canary",
    "/dev/zero", "~", "%s%n", "{}", "ours", "sim", "netns", "swarm", "aeronmd:/bin/sh", "FAIL",
    "PASS", "HARNESS", "a->b", "DATA", "windtunnel/1", "9" * 30, "1GiB", "1h", "9" * 20 + "GiB",
    "aeron:udp?endpoint=${b}:1|term-length=1g", "aeron:ipc", "aeron:udp?=|=|",
)  # fmt: skip
DEPTHS = (3, 60, 1_000, 30_000)
BOMB_BYTES = (1 << 20, 1 << 26)
"""Lengths of the zeros in compressed files. The second is far longer than any file that we read."""
BLOCK = 64


@dataclass(frozen=True)
class Damaged:
    """What takes the place of a file."""

    kind: str
    content: bytes = b""


def damage(chance: random.Random, name: str, content: bytes) -> Damaged:
    """Return a damaged version of a file. The name's suffix determines its structure."""
    if chance.randrange(50) == 0:
        return _other_kind(chance)
    if name.endswith((".gz", ".xz")) and chance.randrange(3):
        return Damaged(FILE, _compressed(chance, name, content))
    if name.endswith(".json") and chance.randrange(4):
        return Damaged(FILE, _json(chance, content))
    if name.endswith(".yaml") and chance.randrange(4):
        return Damaged(FILE, _text(chance, content))
    return Damaged(FILE, damaged_bytes(chance, content))


def _other_kind(chance: random.Random) -> Damaged:
    kind = chance.choice((LINK, LINK, FIFO, FOLDER, ABSENT, FILE))
    return Damaged(kind, chance.choice(LINKS).encode() if kind == LINK else b"")


def damaged_bytes(chance: random.Random, content: bytes) -> bytes:
    """Return the content after some changes of bytes, words or ranges."""
    made = bytearray(content)
    used = _used_blocks(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = _position(chance, used, len(made))
        way = chance.randrange(16)
        if way < 3 and made:
            made[at] ^= 1 << chance.randrange(8)
        elif way < 5 and made:
            made[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif way < 10:
            _put_edge(chance, made, at)
        elif way == 10:
            del made[at:]
        elif way == 11:
            del made[at : at + chance.choice((1, 4, 8, 32, 1_000))]
        elif way == 12:
            length = chance.choice((1, 4, 8, 32, 1_000))
            made[at:at] = made[at : at + length]
        elif way == 13:
            length = chance.choice((4, 8, 32, 1_000, 100_000))
            made[at : at + length] = bytes([chance.choice((0, 0xFF))]) * len(made[at : at + length])
        elif way == 14:
            other, length = _position(chance, used, len(made)), chance.choice((4, 8, 32))
            made[at : at + length] = made[other : other + length].ljust(
                len(made[at : at + length]), b"\0"
            )
        else:
            made += chance.randbytes(chance.choice((1, 7, 32, 4_096)))
    return bytes(made)


def _used_blocks(content: bytes) -> np.ndarray:
    """Return the offsets of the blocks that are not all zero: most of a log buffer is zero."""
    words = np.frombuffer(content, np.uint64, len(content) // BLOCK * (BLOCK // 8))
    return np.flatnonzero(words.reshape(-1, BLOCK // 8).any(axis=1)) * BLOCK


def _position(chance: random.Random, used: np.ndarray, length: int) -> int:
    if length == 0:
        return 0
    way = chance.randrange(8)
    if way == 0 or not len(used):
        return chance.randrange(length)
    if way < 3:
        return min(length - 1, chance.randrange(256))
    return min(length - 1, int(used[chance.randrange(len(used))]) + chance.randrange(BLOCK))


def _put_edge(chance: random.Random, made: bytearray, at: int) -> None:
    """Overwrite a word with a boundary value, or change its value a little."""
    code, length = chance.choice((("<H", 2), ("<I", 4), ("<I", 4), ("<Q", 8), (">I", 4), (">H", 2)))
    at = at // length * length
    if at + length > len(made):
        return
    if chance.randrange(3) == 0:
        (value,) = struct.unpack_from(code, made, at)
        value += chance.choice((-32, -8, -1, 1, 8, 32, 1_024))
    else:
        value = chance.choice(EDGES)
    struct.pack_into(code, made, at, value % (1 << 8 * length))


def _compressed(chance: random.Random, name: str, content: bytes) -> bytes:
    is_gzip = name.endswith(".gz")
    try:
        plain = gzip.decompress(content) if is_gzip else lzma.decompress(content)
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return damaged_bytes(chance, content)
    way = chance.randrange(40)
    if way == 0:
        plain = bytes(chance.choice(BOMB_BYTES))
    elif way == 1:
        plain += bytes(chance.choice(BOMB_BYTES))
    else:
        plain = damaged_bytes(chance, plain)
    return gzip.compress(plain, 1, mtime=0) if is_gzip else lzma.compress(plain, preset=0)


def _json(chance: random.Random, content: bytes) -> bytes:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return damaged_bytes(chance, content)
    way = chance.randrange(20)
    if way == 0:
        return _nested(chance, "[", "]")
    if way == 1:
        return _nested(chance, '{"a":', "}")
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        document = _changed(chance, document)
    text = json.dumps(document)
    for number, literal in enumerate(NUMBERS):
        text = text.replace(f'"number {number}"', literal)
    return text.encode("utf-8", "surrogatepass")


def _nested(chance: random.Random, begin: str, end: str) -> bytes:
    depth = chance.choice(DEPTHS)
    return (begin * depth + "1" + end * (depth if chance.randrange(2) else 0)).encode()


def _changed(chance: random.Random, node: Any) -> Any:
    """Return a JSON value in which one value or key, at a random depth, is changed."""
    if isinstance(node, dict) and node and chance.randrange(8):
        key = chance.choice(list(node))
        way = chance.randrange(12)
        if way == 0:
            return {name: value for name, value in node.items() if name != key}
        if way == 1:
            return node | {chance.choice(TEXTS): node[key]}
        if way == 2:
            return node | {key: node[chance.choice(list(node))]}
        return node | {key: _changed(chance, node[key])}
    if isinstance(node, list) and node and chance.randrange(8):
        index = chance.randrange(len(node))
        way = chance.randrange(12)
        if way == 0:
            return node[:index] + node[index + 1 :]
        if way == 1:
            return node[:index] + node[index:] * chance.choice((2, 50))
        return [*node[:index], _changed(chance, node[index]), *node[index + 1 :]]
    return _other_value(chance, node)


def _other_value(chance: random.Random, node: Any) -> Any:
    way = chance.randrange(12)
    if way < 4:
        # `json.dumps` cannot write all numbers: `_json` puts them in the place of this text.
        return f"number {chance.randrange(len(NUMBERS))}"
    if way < 6:
        return chance.choice(TEXTS)
    if way == 6 and isinstance(node, int):
        return node + chance.choice((-1, 1, 1 << 31, -(1 << 33)))
    made: Any = node
    if way == 7:
        for _ in range(chance.choice(DEPTHS[:2])):
            made = [made]
        return made
    return chance.choice((None, True, False, [], {}, [node], {"a": node}, str(node)))


def _text(chance: random.Random, content: bytes) -> bytes:
    """Return YAML text in which lines or words are changed."""
    lines = content.decode(errors="replace").splitlines()
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        index = chance.randrange(len(lines)) if lines else 0
        way = chance.randrange(12)
        if not lines or way == 0:
            return _nested(chance, chance.choice(("[", "{a: ", "- ", "? ")), "")
        if way == 1:
            del lines[index]
        elif way == 2:
            lines[index:index] = lines[index : index + 1] * chance.choice((1, 1, 30))
        elif way == 3:
            other = chance.randrange(len(lines))
            lines[index], lines[other] = lines[other], lines[index]
        elif way == 4:
            lines[index] = " " * chance.randrange(8) + lines[index].strip()
        else:
            lines[index] = _changed_words(chance, lines[index])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


_WORDS = (
    "&a [*a, *a]", "*a", "!!python/object:os.system x", "!!binary xx", "!!set {a}", "2001-01-01",
    "0x7fffffffffffffff", "0o17", "1_000", "190:20:30", "yes", "~", "null", "[]", "{}", "[[[[]]]]",
    "<<: {}", "|", ">", "'", '"', "\t", "\x7f", "\ufeff", "#", "---", "...", "%YAML 9.9", "@", "`",
)  # fmt: skip


def _changed_words(chance: random.Random, line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    words = line.split() or [""]
    index = chance.randrange(len(words))
    way = chance.randrange(4)
    if way == 0:
        del words[index]
    elif way == 1:
        words[index] += chance.choice((",", ":", "]", "}", "%", "B", "ms", "0" * 30))
    else:
        pool = chance.choice((_WORDS, NUMBERS, TEXTS))
        words[index] = chance.choice(pool) + chance.choice(("", ",", "}", ":"))
    return indent + " ".join(words)
