"""Synthetic log buffer files: three terms in a ring, and the metadata that the judge reads."""

import struct

import numpy as np

METADATA_LENGTH = 4096
HEADER = "<iBBHiiiiq"


def synthetic_log(
    frames: list[tuple[int, bytes]],
    *,
    end: int,
    term_length: int,
    initial_term_id: int,
    session_id: int,
    stream_id: int,
) -> np.ndarray:
    """Return the bytes of a log with frames at positions; later terms overwrite earlier ones."""
    file = np.zeros(3 * term_length + METADATA_LENGTH, dtype=np.uint8)
    for position, content in frames:
        at = ring_offset(position, term_length)
        if position % term_length == 0:
            file[at : at + term_length] = 0
        file[at : at + len(content)] = np.frombuffer(content, dtype=np.uint8)
    metadata = file[3 * term_length :]
    count = end // term_length
    for term in range(max(0, count - 2), count + 1):
        offset = end % term_length if term == count else term_length
        raw = (initial_term_id + term) << 32 | offset
        _put(metadata, "<q", term % 3 * 8, raw)
    _put(metadata, "<i", 24, count)
    _put(metadata, "<q", 128, end)
    _put(metadata, "<i", 140, 1)
    _put(metadata, "<i", 264, initial_term_id)
    _put(metadata, "<i", 276, term_length)
    _put(metadata, HEADER, 320, 0, 0, 0xC0, 1, 0, session_id, stream_id, initial_term_id, 0)
    return file


def ring_offset(position: int, term_length: int) -> int:
    """Return the offset of a position in the file."""
    return position // term_length % 3 * term_length + position % term_length


def _put(metadata: np.ndarray, form: str, at: int, *values: int) -> None:
    content = struct.pack(form, *values)
    metadata[at : at + len(content)] = np.frombuffer(content, dtype=np.uint8)
