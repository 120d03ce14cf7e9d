"""Driver directories for the tools: unpacked from golden sets, or small synthetic ones."""

import struct
from pathlib import Path

import numpy as np

from tests.golden.reader import GOLDEN, load

BLOCK = 1 << 16
RING, CLIENTS, COUNTERS, ERRORS = 4096 + 768, 1024 + 128, 8, 512
LENGTHS = (RING, CLIENTS, COUNTERS * 512, COUNTERS * 128, ERRORS)
RING_AT = 128
METADATA_AT = RING_AT + RING + CLIENTS
VALUES_AT = METADATA_AT + COUNTERS * 512
ERRORS_AT = VALUES_AT + COUNTERS * 128
HEARTBEAT_AT = RING_AT + RING - 768 + 640


def unpack(golden_set: str, folder: Path) -> Path:
    """Return a folder with the cnc file of a set, which is sparse like a driver's."""
    folder.mkdir(parents=True, exist_ok=True)
    content = load(golden_set, "cnc.dat")
    with (folder / "cnc.dat").open("wb") as file:
        file.truncate(len(content))
        for at in range(0, len(content), BLOCK):
            block = content[at : at + BLOCK]
            if block.count(0) != len(block):
                file.seek(at)
                file.write(block)
    return folder


def unpack_loss_report(name: str, folder: Path) -> Path:
    """Return a folder with the loss report of a run, as long as a driver creates it."""
    folder.mkdir(parents=True, exist_ok=True)
    content = bytes.fromhex((GOLDEN / "loss-report" / f"{name}.hex").read_text())
    (folder / "loss-report.dat").write_bytes(content.ljust(1 << 20, b"\0"))
    return folder


def stream_key(registration_id: int, session_id: int, stream_id: int, channel: str) -> bytes:
    head = struct.pack("<qiii", registration_id, session_id, stream_id, len(channel))
    return head + channel.encode()


def small_cnc(*, version: int = 512, heartbeat_ms: int = 1, pid: int = 4711) -> bytearray:
    """Return a complete small cnc file, without counters or errors."""
    header = struct.pack("<6iqqqi", version, *LENGTHS, 10**10, 5000, pid, 4096).ljust(128, b"\0")
    content = bytearray(header + bytes(sum(LENGTHS)))
    struct.pack_into("<q", content, HEARTBEAT_AT, heartbeat_ms)
    return content


def put_counter(
    content: bytearray,
    counter_id: int,
    *,
    type_id: int,
    label: str,
    key: bytes = b"",
    value: int = 0,
    reference_id: int = 0,
) -> None:
    at = METADATA_AT + counter_id * 512
    struct.pack_into("<iiq112s", content, at, 1, type_id, (1 << 63) - 1, key)
    text = label.encode()
    struct.pack_into(f"<i{len(text)}s", content, at + 128, len(text), text)
    values = (value, counter_id, -1, reference_id)
    struct.pack_into("<4q", content, VALUES_AT + counter_id * 128, *values)


def put_error(content: bytearray, at: int, count: int, first_ms: int, text: str) -> int:
    """Write an entry at an offset of the error log. Returns the offset of the next one."""
    encoded = text.encode()
    fields = (24 + len(encoded), count, first_ms + 7, first_ms, encoded)
    struct.pack_into(f"<iiqq{len(encoded)}s", content, ERRORS_AT + at, *fields)
    return at + (24 + len(encoded) + 7) // 8 * 8


def as_array(content: bytes | bytearray) -> np.ndarray:
    return np.frombuffer(bytes(content), dtype=np.uint8)


def write(folder: Path, content: bytes | bytearray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cnc.dat").write_bytes(content)
    return folder
