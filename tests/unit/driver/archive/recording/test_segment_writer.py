"""The files that a segment writer creates or opens."""

import os
import stat

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.recording.segment_writer import (
    LARGE_BLOCK_LENGTH,
    LONG_RECORDING_LENGTH,
    SegmentWriter,
)
from windtunnel.driver.archive.storage import huge_pages
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.wire import frame_type, header


def test_a_new_recording_does_not_write_into_an_existing_file(tmp_path):
    path = tmp_path / "0-0.rec"
    path.write_bytes(b"somebody's")
    with pytest.raises(StorageError, match=r"cannot create .*0-0\.rec: File exists; .* move it"):
        SegmentWriter(tmp_path, own.descriptor(), 0, is_new=True)
    assert path.read_bytes() == b"somebody's"


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_file_has_the_mode_of_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        SegmentWriter(tmp_path, own.descriptor(), 0, is_new=True).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "0-0.rec").stat().st_mode) == 0o666 & ~umask


def test_a_new_recording_does_not_follow_a_link(tmp_path):
    (tmp_path / "0-0.rec").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="File exists"):
        SegmentWriter(tmp_path, own.descriptor(), 0, is_new=True)
    assert not (tmp_path / "elsewhere").exists()


def test_an_extended_recording_does_not_follow_a_link(tmp_path):
    content = b"1" * own.SEGMENT
    (tmp_path / "elsewhere").write_bytes(content)
    (tmp_path / "0-0.rec").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"cannot open .*0-0\.rec: .* found a symbolic link"):
        SegmentWriter(tmp_path, own.descriptor(stop=64), 64)
    assert (tmp_path / "elsewhere").read_bytes() == content


def test_an_extended_recording_keeps_the_data_before_its_position(tmp_path):
    end = own.write(tmp_path, 0, own.stream([1000] * 3))
    before = (tmp_path / "0-0.rec").read_bytes()
    SegmentWriter(tmp_path, own.descriptor(stop=end), end).close()
    assert (tmp_path / "0-0.rec").read_bytes() == before


def test_an_extended_recording_creates_a_missing_file(tmp_path):
    """As after a truncation at a segment's base."""
    SegmentWriter(tmp_path, own.descriptor(stop=own.SEGMENT), own.SEGMENT).close()
    assert (tmp_path / f"0-{own.SEGMENT}.rec").stat().st_size == own.SEGMENT


def test_the_next_file_must_not_exist(tmp_path):
    frames = own.stream([992] * (own.SEGMENT // 1024))
    writer = SegmentWriter(tmp_path, own.descriptor(), 0, is_new=True)
    following = tmp_path / f"0-{own.SEGMENT}.rec"
    following.write_bytes(b"somebody's")
    for _, content in frames[:-1]:
        writer.write(memoryview(content))
    with pytest.raises(StorageError, match="File exists"):
        writer.write(memoryview(frames[-1][1]))
    assert following.read_bytes() == b"somebody's"


@pytest.mark.parametrize(
    ("start", "position", "length", "expected"),
    [
        (0, LONG_RECORDING_LENGTH, LARGE_BLOCK_LENGTH, [(0, LARGE_BLOCK_LENGTH)]),
        (0, LONG_RECORDING_LENGTH, LARGE_BLOCK_LENGTH - 32, []),
        (0, LONG_RECORDING_LENGTH - LARGE_BLOCK_LENGTH, LARGE_BLOCK_LENGTH, []),
        (64 << 10, LONG_RECORDING_LENGTH, LARGE_BLOCK_LENGTH, []),
    ],
)
def test_huge_pages_are_for_large_blocks_of_long_recordings(
    tmp_path, monkeypatch, start, position, length, expected
):
    parts, segment_length = [], 128 << 10
    monkeypatch.setattr(huge_pages, "allocate", lambda _file, *part: parts.append(part))
    descriptor = own.descriptor(start=start, segment_file_length=segment_length)
    writer = SegmentWriter(tmp_path, descriptor, position)
    block = bytearray(length)
    block[header.TYPE] = frame_type.DATA
    writer.write(memoryview(block))
    writer.close()
    base = LONG_RECORDING_LENGTH % segment_length
    assert parts == [(base + a, base + b, segment_length) for a, b in expected]
