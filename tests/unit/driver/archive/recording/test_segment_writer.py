"""The files that a segment writer creates or opens."""

import os
import stat

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter
from windtunnel.driver.base.errors import StorageError


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
