"""Reference implementation of the comparison of two logs, by slices of bytes."""

import struct

from windtunnel.harness.dissect.driver_files import log_walk


def compare_logs(publication: bytes, image: bytes, start: int, end: int):
    """Return (status, at, byte, frames, fills), as the kernel does."""
    at, frames, fills = start, 0, []
    while at < end:
        length, kind = _head(publication, at)
        if length < 32 or at + _up(length) > end:
            return log_walk.PUBLICATION_ENDS, at, 0, frames, fills
        image_length, image_kind = _head(image, at)
        if image_length <= 0:
            return log_walk.IMAGE_ENDS, at, 0, frames, fills
        size = 32 if kind == 0 else length
        pairs = zip(publication[at : at + size], image[at : at + size], strict=True)
        wrong = [byte for byte, (left, right) in enumerate(pairs) if left != right]
        if not wrong:
            at, frames = at + _up(length), frames + 1
            continue
        whole = image_length == _up(image_length) and at + image_length <= end
        starts = _starts(publication, at, at + image_length) if whole else []
        if image_kind != 0 or image_length < 32 or not starts:
            return log_walk.DIFFERENT, at, wrong[0], frames, fills
        fills.append((at, at + image_length))
        at, frames = at + image_length, frames + len(starts)
    return log_walk.IDENTICAL, at, 0, frames, fills


def _head(log: bytes, at: int) -> tuple[int, int]:
    length, _, _, kind = struct.unpack_from("<iBBH", log, at)
    return length, kind


def _up(length: int) -> int:
    return -(-length // 32) * 32


def _starts(log: bytes, at: int, end: int) -> list[int]:
    """Return the offsets of the frames between two offsets; none if they leave gaps."""
    starts = []
    while at < end:
        length, _ = _head(log, at)
        if length < 32:
            return []
        starts.append(at)
        at += _up(length)
    return starts if at == end else []
