"""Blocks of a recording: their bounds, their session and stream ids, and invalid frames."""

import struct

import numpy as np
import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.replay.recording_reader import (
    RecordingReader,
    publication_parameters,
)
from windtunnel.driver.archive.storage.checksum import CRC_32
from windtunnel.driver.base.errors import StorageError

LENGTHS = [1000, 200, 1376, 31, 700] * 60
SESSION, STREAM = 77, 88


def _written(folder, lengths=LENGTHS, start=0, **options):
    frames = own.stream(lengths, start, **options)
    end = own.write(folder, 0, frames, start)
    return frames, end, own.descriptor(start=start, stop=end)


def _readdressed(frame):
    content = bytearray(frame)
    struct.pack_into("<2i", content, 12, SESSION, STREAM)
    return bytes(content)


class _Space:
    """Space for a block, in which unwritten bytes are zero, like in a term."""

    def __init__(self):
        self.first_word = np.zeros(8, np.uint8)
        self.frames = np.zeros(own.TERM, np.uint8)


def _block(reader, end, limit):
    """Return the next block and its bytes, which are None for padding."""
    space = _Space()
    try:
        block = reader.block(space, end, limit, SESSION, STREAM)
    except StorageError:
        assert not space.frames.any()
        raise
    kept = 0 if block.is_padding else block.length
    assert not space.frames[:8].any()
    assert not space.frames[kept:].any()
    content = space.first_word.tobytes() + space.frames[8:kept].tobytes()
    return block, None if block.is_padding else content


def _read(reader, end, limit=None):
    """Return (position, length, bytes or None) of every block."""
    found = []
    while True:
        block, content = _block(reader, end, end if limit is None else limit)
        if block.length == 0:
            return found
        found.append((reader.position, block.length, content))
        reader.advance(block)


def _expected(frames, position):
    return b"".join(
        _readdressed(content)
        for at, content in frames
        if at >= position and struct.unpack_from("<H", content, 6)[0] == own.DATA
    )


@pytest.mark.parametrize("io_max_length", [1408, 4096, 1 << 20])
@pytest.mark.parametrize("start", [0, 66_560])
def test_all_frames_are_read_with_the_replays_session_id(tmp_path, io_max_length, start):
    frames, end, found = _written(tmp_path, start=start)
    reader = RecordingReader(tmp_path, found, start, io_max_length=io_max_length)
    blocks = _read(reader, end)
    reader.close()
    assert reader.position == end > start + own.SEGMENT
    assert b"".join(content for _, _, content in blocks if content) == _expected(frames, start)
    pads = {at: len(each) for at, each in frames if struct.unpack_from("<H", each, 6)[0] == own.PAD}
    assert {at: length for at, length, content in blocks if content is None} == pads
    assert all(at // own.TERM == (at + length - 1) // own.TERM for at, length, _ in blocks)
    assert all(length <= io_max_length for _, length, content in blocks if content)


def test_reading_may_start_at_any_frame(tmp_path):
    frames, end, found = _written(tmp_path)
    for position, _ in (frames[7], frames[-1], frames[len(frames) // 2]):
        reader = RecordingReader(tmp_path, found, position)
        content = b"".join(each or b"" for _, _, each in _read(reader, end))
        assert content == _expected(frames, position)
        reader.close()


def test_the_frame_that_contains_the_end_position_is_read(tmp_path):
    frames, _, found = _written(tmp_path)
    position, content = frames[4]
    for end, expected in ((position, position), (position + 1, position + len(content))):
        reader = RecordingReader(tmp_path, found, 0)
        _read(reader, end, limit=found.stop_position)
        assert reader.position == expected
        reader.close()


def test_nothing_is_read_beyond_the_limit_until_it_advances(tmp_path):
    frames, end, found = _written(tmp_path)
    reader = RecordingReader(tmp_path, found, 0)
    for index in range(10):
        position, content = frames[index]
        for limit in (position, position + 7, position + 31, position + len(content) - 1):
            _read(reader, end, limit=limit)
            assert reader.position == position
    _read(reader, end)
    assert reader.position == end
    reader.close()


def test_padding_is_not_skipped_before_all_of_it_is_recorded(tmp_path):
    frames, end, found = _written(tmp_path)
    position, pad = next(each for each in frames if each[1][6] == own.PAD)
    reader = RecordingReader(tmp_path, found, position)
    assert _read(reader, end, limit=position + len(pad) - 32) == []
    assert _read(reader, end, limit=position + len(pad)) == [(position, len(pad), None)]
    reader.close()


def test_a_block_ends_at_the_term_end_also_without_padding(tmp_path):
    _, end, found = _written(tmp_path, [1024 - 32] * 100)
    reader = RecordingReader(tmp_path, found, 0)
    assert [length for _, length, _ in _read(reader, end)] == [own.TERM, end - own.TERM]
    reader.close()


@pytest.mark.parametrize("offset", [32, 96])
def test_a_position_within_a_frame_is_rejected(tmp_path, offset):
    _, end, found = _written(tmp_path)
    reader = RecordingReader(tmp_path, found, offset)
    with pytest.raises(StorageError, match=f"invalid frame at position {offset}"):
        _read(reader, end)
    reader.close()


def test_a_block_with_a_damaged_frame_is_not_returned(tmp_path):
    frames, end, found = _written(tmp_path, checksummed=True)
    position, _ = frames[9]
    with open(tmp_path / "0-0.rec", "r+b") as file:
        file.seek(position + 40)
        file.write(b"\0")
    reader = RecordingReader(tmp_path, found, 0, checksum=CRC_32)
    with pytest.raises(StorageError, match=f"invalid frame at position {position}: checksum"):
        _read(reader, end)
    assert reader.position == 0
    # A reader that ends before the damaged frame gets the frames before it.
    block, _ = _block(reader, position, end)
    assert block.length == position
    reader.close()


def test_data_that_ends_before_the_stop_position_is_reported(tmp_path):
    _, end, found = _written(tmp_path)
    reader = RecordingReader(tmp_path, found, 0)
    with pytest.raises(StorageError, match=f"unexpected end of data at position {end}"):
        _read(reader, end + 64)
    reader.close()


def test_a_missing_file_is_reported(tmp_path):
    _, end, found = _written(tmp_path)
    (tmp_path / "0-131072.rec").unlink()
    reader = RecordingReader(tmp_path, found, 0)
    with pytest.raises(StorageError, match=r"cannot open .*0-131072\.rec: No such file"):
        _read(reader, end)
    assert reader.position == own.SEGMENT
    with pytest.raises(StorageError, match=r"cannot open .*7-0\.rec"):
        RecordingReader(tmp_path, own.descriptor(7), 0)


def test_after_a_missing_file_only_the_readers_own_file_is_closed(tmp_path):
    _, end, found = _written(tmp_path)
    (tmp_path / "0-131072.rec").unlink()
    reader = RecordingReader(tmp_path, found, 0)
    with pytest.raises(StorageError, match="cannot open"):
        _read(reader, end)
    with open(tmp_path / "another", "wb+") as another:
        # If the reader had closed its descriptor before, this file might have got the same number.
        reader.close()
        reader.close()
        another.write(b"still open")
        another.flush()


def test_publication_parameters_of_a_position():
    assert publication_parameters(own.descriptor(), 66_560) == (
        "init-term-id=2147483647|term-id=-2147483648|term-offset=1024|term-length=65536|mtu=1408"
    )
