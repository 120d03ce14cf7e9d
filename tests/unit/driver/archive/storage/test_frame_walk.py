"""Iteration over frames: valid files, and every kind of invalid frame."""

import errno
import struct

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage import frame_walk
from windtunnel.driver.archive.storage.checksum import CRC_32
from windtunnel.driver.archive.storage.frame_walk import SegmentReader
from windtunnel.driver.base.errors import StorageError

LENGTHS = [1000, 1, 0, 1376, 500, 31, 32, 33] * 16


def _reader(folder, frames, start=0):
    own.write(folder, 0, frames, start)
    base = start - start % own.TERM
    return SegmentReader(folder / f"0-{base}.rec", base)


def _fault(folder, frames, checksum=None, **changed):
    with _reader(folder, frames) as reader:
        end, _ = reader.end_of_data(0, reader.length)
        return reader.fault(own.descriptor(**changed), 0, end, checksum)


@pytest.mark.parametrize("chunk_length", [1408, 4096, 1 << 20])
def test_all_frames_of_a_file_are_visited(tmp_path, monkeypatch, chunk_length):
    monkeypatch.setattr(frame_walk, "CHUNK_LENGTH", chunk_length)
    frames = [each for each in own.stream(LENGTHS * 2) if each[0] < own.SEGMENT]
    with _reader(tmp_path, frames) as reader:
        end, last = reader.end_of_data(0, reader.length)
        assert last == frames[-1][0]
        assert end == last + len(frames[-1][1])
        assert reader.fault(own.descriptor(), 0, end, None) is None
        assert [each.position for each in reader.frames(0, end)] == [each[0] for each in frames]
        pads = [each for each in reader.frames(0, end) if each.type_code == own.PAD]
        assert len(pads) >= 1


def test_data_that_starts_within_a_file_is_visited(tmp_path):
    start = 66_560
    frames = own.stream(LENGTHS, start)
    with _reader(tmp_path, frames, start) as reader:
        assert reader.end_of_data(0, reader.length) == (0, -1)
        end, _ = reader.end_of_data(start % own.TERM, reader.length)
        assert reader.base + end == frames[-1][0] + len(frames[-1][1])
        assert reader.fault(own.descriptor(start=start), start % own.TERM, end, None) is None


@pytest.mark.parametrize(
    ("place", "value", "status"),
    [
        (0, 31, frame_walk.BAD_LENGTH),
        (0, 1409, frame_walk.BAD_LENGTH),
        (0, 65_536, frame_walk.BAD_LENGTH),
        (0, 0x7FFFFFFF, frame_walk.BAD_LENGTH),
        (8, 32, frame_walk.BAD_TERM_OFFSET),
        (16, 1002, frame_walk.BAD_STREAM_ID),
        (20, own.INITIAL_TERM_ID - 1, frame_walk.BAD_TERM_ID),
        (4, 2 << 16, frame_walk.BAD_TYPE),
    ],
)
@pytest.mark.parametrize("index", [0, 5, len(LENGTHS) - 1])
def test_an_invalid_frame_is_reported_with_its_position(tmp_path, place, value, status, index):
    frames = own.stream(LENGTHS)
    position, content = frames[index]
    changed = bytearray(content)
    struct.pack_into("<i", changed, place, value)
    frames[index] = (position, bytes(changed))
    fault = _fault(tmp_path, frames)
    assert (fault.position, fault.status) == (position, status)
    assert f"position {position}" in fault.text


def test_a_changed_byte_is_found_if_checksums_are_verified(tmp_path):
    frames = own.stream(LENGTHS, checksummed=True)
    assert _fault(tmp_path, frames, CRC_32) is None
    position, content = frames[3]
    frames[3] = (position, content[:40] + b"!" + content[41:])
    assert _fault(tmp_path, frames) is None
    fault = _fault(tmp_path, frames, CRC_32)
    assert (fault.position, fault.status) == (position, frame_walk.BAD_CHECKSUM)


def test_padding_has_no_checksum(tmp_path):
    pad, behind = own.frame(0, bytes(4064), is_pad=True), own.frame(4096, b"x", checksummed=True)
    frames = [(0, pad), (4096, behind)]
    assert _fault(tmp_path, frames, CRC_32) is None


def test_padding_may_be_longer_than_a_datagram_but_not_than_its_term(tmp_path):
    assert _fault(tmp_path, [(0, own.frame(0, bytes(own.TERM - 32), is_pad=True))]) is None
    frames = own.stream([100])
    frames.append((160, own.frame(160, bytes(own.TERM - 32 - 128), is_pad=True)))
    fault = _fault(tmp_path, frames)
    assert (fault.position, fault.status) == (160, frame_walk.BAD_LENGTH)


def test_a_frame_truncated_by_the_end_of_its_file_is_invalid(tmp_path):
    frames = own.stream([1000, 1000])
    own.write(tmp_path, 0, frames)
    with open(tmp_path / "0-0.rec", "r+b") as file:
        file.truncate(1500)
    with SegmentReader(tmp_path / "0-0.rec", 0) as reader:
        assert reader.end_of_data(0, reader.length) == (2112, 1056)
        assert reader.fault(own.descriptor(), 0, 2112, None).position == 1056


def test_memory_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def without_memory(*_):
        raise OSError(errno.EFAULT, "Bad address")

    with _reader(tmp_path, own.stream([1000])) as reader:
        monkeypatch.setattr(frame_walk.os, "preadv", without_memory)
        with pytest.raises(StorageError, match=r"0-0.rec at offset 0: no memory for the data"):
            reader.read(0, 32)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(StorageError, match=r"cannot open .*0-0.rec: No such file"):
        SegmentReader(tmp_path / "0-0.rec", 0)
