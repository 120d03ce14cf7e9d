"""Comparison of a publication's log with an image's log, frame by frame. Gaps that the image filled
with padding are allowed.

    publication  | DATA | DATA | DATA | DATA | PAD - - - - |
    image        | DATA | PAD - - - - | DATA | PAD - - - - |
                          a filled gap

Both logs cover the same range of positions, which starts with a frame. Bytes after the header of a
PAD are undefined and not compared.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.dissect.frames.bytes_at import i32_le, u16_le
from windtunnel.harness.dissect.frames.frames import DATA_HEADER_LENGTH, FRAME_ALIGNMENT, aligned

IDENTICAL = 0
"""Result: both logs have the same frames up to the end."""
DIFFERENT = 1
PUBLICATION_ENDS = 2
"""Result: the publication has no valid frame at the expected offset."""
IMAGE_ENDS = 3
"""Result: the publication has a frame where the image has none."""

STATUS, AT, BYTE, FRAMES, FILLED = range(5)
RESULT_LENGTH = 5

_PAD, _HEADER, _ALIGNMENT = PAD, DATA_HEADER_LENGTH, FRAME_ALIGNMENT


@kernel
def compare_logs(
    publication: Any, image: Any, start: int, end: int, fills: Any, result: Any
) -> None:
    """Compare the logs of a publication and an image from `start` to `end`.

    Shapes:  publication, image uint8[n], end <= n; fills int64[f, 2]; result int64[5]
    Returns: in `result` the status, the offset where the comparison ended, the first differing byte
             of that frame, the number of frames of the publication, and the number of gaps that the
             image has filled; in `fills` start and end of the first f of these gaps
    """
    result[:] = 0
    at = start
    while at < end:
        result[AT] = at
        length = i32_le(publication, at)
        if length < _HEADER or at + aligned(length) > end:
            result[STATUS] = PUBLICATION_ENDS
            return
        if i32_le(image, at) <= 0:
            result[STATUS] = IMAGE_ENDS
            return
        byte = _first_difference(publication, image, at, length)
        if byte < 0:
            result[FRAMES] += 1
            at += aligned(length)
            continue
        frames = _filled(publication, image, at, end)
        if frames == 0:
            result[STATUS] = DIFFERENT
            result[BYTE] = byte
            return
        if result[FILLED] < len(fills):
            fills[result[FILLED], 0] = at
            fills[result[FILLED], 1] = at + i32_le(image, at)
        result[FILLED] += 1
        result[FRAMES] += frames
        at += i32_le(image, at)
    result[AT] = at


@kernel
def _first_difference(publication: Any, image: Any, at: int, length: int) -> int:
    """Return the offset of the first byte in which two frames differ, or -1 if they are equal."""
    compared = _HEADER if u16_le(publication, at + 6) == _PAD else length
    for byte in range(compared):
        if publication[at + byte] != image[at + byte]:
            return byte
    return -1


@kernel
def _filled(publication: Any, image: Any, at: int, end: int) -> int:
    """Return the number of complete frames in the publication's log that are covered by one PAD
    frame in the image's log.
    """
    length = i32_le(image, at)
    if u16_le(image, at + 6) != _PAD or length < _HEADER or length % _ALIGNMENT:
        return 0
    if at + length > end:
        return 0
    frames = 0
    inner = at
    while inner < at + length:
        covered = i32_le(publication, inner)
        if covered < _HEADER:
            return 0
        inner += aligned(covered)
        frames += 1
    return frames if inner == at + length else 0
