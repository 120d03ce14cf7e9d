"""Reads the frames of a capture file, which may be compressed, with a table of their addresses."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.artifact.regular_file import open_regular, real_path
from windtunnel.harness.dissect.capture.capture_format import CaptureFormatError
from windtunnel.harness.dissect.capture.capture_stream import (
    GAP_BYTES_MAX,
    UNREADABLE,
    CaptureStream,
    Reading,
)

FRAMES_MAX = 20_000_000
"""Maximum number of frames in a capture. Their records must fit in an ordinary machine's memory."""
_KEPT = (
    *("time_ns", "frame_type", "flags", "frame_length", "session_id", "stream_id", "term_id"),
    *("term_offset", "initial_term_id", "term_length", "mtu", "nak_length", "window_bytes"),
    *("source_port", "destination_port", "ip_identification"),
)
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}
_ZSTD = b"\x28\xb5\x2f\xfd"


class CaptureError(ValueError):
    """Raised if a capture cannot be converted to a scenario. The message gives the file and the
    reason.
    """


def read_frames(file: Path) -> tuple[NDArray[Any], list[bytes], dict[str, int]]:
    """Read a capture file. Returns its frames, a table of addresses, and its packet counts.

    The fields `source` and `destination` of a frame are indices into the table of addresses.
    """
    columns = [*_KEPT, "source", "destination"]
    dtype = np.dtype([(name, "<i8") for name in columns])
    parts: list[NDArray[Any]] = []
    addresses: dict[bytes, int] = {}
    total = 0
    try:
        with _opened(file) as plain:
            stream = CaptureStream(plain, Reading(keeps_hash=False, gap_bytes_max=GAP_BYTES_MAX))
            for batch in stream.batches():
                part = np.zeros(len(batch.rows), dtype=dtype)
                for name in _KEPT:
                    part[name] = batch.rows[name]
                for name in ("source", "destination"):
                    part[name] = _numbered(batch.rows[name], batch.addresses, addresses)
                parts.append(part)
                total += len(part)
                if total > FRAMES_MAX:
                    raise CaptureError(
                        f"{file}: expected at most {FRAMES_MAX} frames, found more: split the "
                        "capture"
                    )
            problem, counts = stream.problem, stream.counts
    except (CaptureFormatError, *UNREADABLE) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CaptureError(f"{file}: {text}") from error
    if problem:
        raise CaptureError(f"{file}: {problem}")
    empty = np.zeros(0, dtype=dtype)
    return np.concatenate([empty, *parts]), list(addresses), counts


def damage_of(file: Path, counts: dict[str, int]) -> Iterator[str]:
    """Yield a sentence about the bytes that were skipped, and about those that are missing at the
    end.
    """
    if torn := counts["torn_bytes"]:
        ignored = f"the last {torn} {noun_for(torn, 'byte was', 'bytes were')} ignored"
        yield f"{file.name}: the capture ends inside a packet, and {ignored}"
    if damaged := counts["damaged_bytes"]:
        yield f"{file.name}: {damaged} {noun_for(damaged, 'byte is', 'bytes are')} damaged"


def _numbered(
    slots: NDArray[Any], table: NDArray[Any], known: dict[bytes, int]
) -> NDArray[np.int64]:
    """Convert the address indices of one batch of packets to address indices of the whole
    capture.
    """
    numbers = np.zeros(len(table), dtype=np.int64)
    for slot in np.unique(slots):
        name = b"".join(
            int(table[slot][half]).to_bytes(8, "big", signed=True) for half in ("high", "low")
        )
        numbers[slot] = known.setdefault(name, len(known))
    found: NDArray[np.int64] = numbers[slots]
    return found


@contextmanager
def _opened(file: Path) -> Iterator[BufferedIOBase]:
    # The user may name a capture through a link, but a FIFO would block forever.
    with open_regular(real_path(file)) as plain:
        head = plain.read(8)
        if head.startswith(_ZSTD):
            raise CaptureError(
                f"{file}: zstd is not supported: decompress the file first (zstd -d)"
            )
        opener = next((each for magic, each in _OPENERS.items() if head.startswith(magic)), None)
        if opener is None:
            plain.seek(0)
            yield cast("BufferedIOBase", plain)
            return
        plain.seek(0)
        with opener(plain) as unpacked:
            yield unpacked
