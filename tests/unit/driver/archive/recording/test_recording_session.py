"""A recording contains the published bytes, also after errors, restarts and kills."""

import errno
import os
import random
import struct
from contextlib import suppress

import pytest

from tests.unit.driver.archive.recording.own_image import (
    SEGMENT,
    TERM,
    described,
    faults,
    messages,
    published_bytes,
    record,
    recorded_bytes,
    session,
)
from tests.unit.driver.client.own_stream import OwnStream
from windtunnel.driver.archive.recording.segment_writer import SegmentWriter, WriteOptions
from windtunnel.driver.archive.storage.checksum import CRC_32, CRC_32C
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.archive.storage.sync import SyncLevel
from windtunnel.driver.base.errors import StorageError

KILL_POINTS = 500
PAGE = 4096


class Killed(BaseException):
    """Simulates the end of the process."""


@pytest.fixture
def stream(tmp_path):
    return OwnStream(tmp_path)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


def _fill(stream, upto):
    """Publish until the stream reaches exactly the given position."""
    while (room := upto - stream.publication.position) > 0:
        length = min(room, 1408) - 32
        stream.write(bytes([room % 251]) * length)


def test_a_published_stream_is_recorded_byte_by_byte(stream, folder):
    recording = session(stream, folder)
    stream.write(*messages(60))
    end = stream.publication.position
    assert SEGMENT < end < 3 * TERM
    assert record(recording) < 10
    assert recording.position == end
    assert recorded_bytes(folder, end) == published_bytes(stream, end)
    assert faults(folder, described(), end) == []
    assert [each.base for each in segments_of(folder, 0)] == [0, SEGMENT]
    assert recovered_stop(folder, described()).position == end


def test_blocks_have_the_maximum_length(stream, folder):
    recording = session(stream, folder, io_max_length=2 * 1408)
    stream.write(*messages(60))
    end = stream.publication.position
    assert record(recording) >= end // (2 * 1408)
    assert recorded_bytes(folder, end) == published_bytes(stream, end)


def test_the_counter_follows_the_written_position(stream, folder):
    recording = session(stream, folder)
    seen = recording._counter.values
    assert seen == [0]
    for each in messages(20):
        stream.write(each)
        record(recording)
        assert seen[-1] == recording.position == stream.publication.position
    assert seen == sorted(seen)


def test_only_the_header_of_padding_is_written(stream, folder, monkeypatch):
    recording = session(stream, folder)
    stream.write(b"x")
    stream.pad(8_000)
    stream.write(b"y")
    lengths = []
    pwrite = os.pwrite

    def noted(file, content, at):
        lengths.append(len(content))
        return pwrite(file, content, at)

    monkeypatch.setattr(os, "pwrite", noted)
    record(recording)
    assert lengths == [64, 32, 64]
    assert recorded_bytes(folder, recording.position) == published_bytes(
        stream, stream.publication.position
    )


def test_a_recording_of_a_late_join_starts_at_the_join_position(stream, folder):
    stream.write(*messages(10))
    start = stream.publication.position
    reader = stream.image
    while reader.poll(lambda payload, header: None, 100):
        pass
    recording = session(stream, folder)
    stream.write(*messages(40))
    end = stream.publication.position
    record(recording)
    content = recorded_bytes(folder, end)
    assert not any(content[:start])
    assert content[start:] == published_bytes(stream, end)[start:]
    assert recovered_stop(folder, described(start=start)).position == end


def test_a_session_ends_when_its_whole_stream_is_recorded(stream, folder):
    recording = session(stream, folder)
    stream.write(*messages(10))
    stream.end_at(stream.publication.position)
    record(recording)
    assert recording.is_done
    assert recording.failure is None
    assert recording.position == stream.publication.position
    assert recording.do_work() == 0
    recording.stop()


def test_a_full_segment_file_creates_the_next_at_once(stream, folder):
    recording = session(stream, folder)
    _fill(stream, SEGMENT)
    record(recording)
    assert recording.position == SEGMENT
    sizes = {each.base: each.path.stat().st_size for each in segments_of(folder, 0)}
    assert sizes == {0: SEGMENT, SEGMENT: SEGMENT}
    assert recovered_stop(folder, described()).position == SEGMENT


def test_an_existing_next_file_ends_the_recording_after_the_full_one(stream, folder):
    (folder / f"0-{SEGMENT}.rec").write_bytes(b"mine")
    recording = session(stream, folder)
    stream.write(*messages(60))
    record(recording)
    assert recording.is_done
    assert f"cannot create {folder}/0-{SEGMENT}.rec: File exists" in str(recording.failure)
    assert recording.position == SEGMENT == recording._counter.values[-1]
    assert (folder / "0-0.rec").read_bytes() == published_bytes(stream, SEGMENT)
    assert (folder / f"0-{SEGMENT}.rec").read_bytes() == b"mine"


@pytest.mark.parametrize("written", [0, 5_000])
def test_a_full_disk_ends_the_recording_without_a_torn_frame(stream, folder, monkeypatch, written):
    recording = session(stream, folder)
    stream.write(*messages(5))
    record(recording)
    before = recording.position
    stream.write(*messages(10))
    pwrite, left = os.pwrite, [written]

    def full(file, content, at):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count, left[0] = left[0], 0
        return pwrite(file, content[:count], at)

    monkeypatch.setattr(os, "pwrite", full)
    assert recording.do_work() == 0
    monkeypatch.undo()
    assert recording.is_done
    assert "No space left on device" in str(recording.failure)
    assert recording.position == before
    assert recorded_bytes(folder, before) == published_bytes(stream, before)


@pytest.mark.parametrize("checksum", [CRC_32, CRC_32C])
def test_checksums_are_written_to_the_file_and_not_to_the_log_buffer(stream, folder, checksum):
    recording = session(stream, folder, WriteOptions(checksum=checksum))
    stream.write(*messages(60))
    end = stream.publication.position
    untouched = published_bytes(stream, end)
    record(recording)
    assert published_bytes(stream, end) == untouched
    assert faults(folder, described(), end, checksum) == []
    content = bytearray(recorded_bytes(folder, end))
    assert content != untouched
    at = 0
    while at < end:
        length, kind = struct.unpack_from("<i2xH", content, at)
        content[at + 12 : at + 16] = untouched[at + 12 : at + 16]
        assert kind in (0, 1)
        at += (length + 31) // 32 * 32
    assert content == untouched


@pytest.mark.parametrize(
    ("level", "calls"),
    [(SyncLevel.CACHE, ""), (SyncLevel.DATA, "dfddd"), (SyncLevel.DATA_AND_METADATA, "fffff")],
)
def test_each_block_is_synced_according_to_the_sync_level(
    stream, folder, monkeypatch, level, calls
):
    """The new file and its name are synced first, then each of three blocks."""
    seen = []
    monkeypatch.setattr(os, "fdatasync", lambda file: seen.append("d"))
    monkeypatch.setattr(os, "fsync", lambda file: seen.append("f"))
    recording = session(stream, folder, WriteOptions(sync_level=level))
    for _ in range(3):
        stream.write(b"block")
        assert record(recording) == 1
    assert "".join(seen) == calls


def test_a_recording_is_extended_where_it_stopped(stream, folder):
    first = session(stream, folder)
    stream.write(*messages(20))
    record(first)
    first.stop()
    stop = first.position
    with open(folder / "0-0.rec", "r+b") as file:
        file.seek(stop)
        file.write(b"what a killed archive may have left")
    stream.image.position = 0
    again = session(stream, folder, start=0)
    assert again.position == stop
    assert recovered_stop(folder, described()).position == stop
    stream.write(*messages(40, seed=2))
    record(again)
    end = stream.publication.position
    assert recorded_bytes(folder, end) == published_bytes(stream, end)


def test_a_missing_directory_is_reported(stream, tmp_path):
    with pytest.raises(StorageError, match=r"cannot create .*nowhere/0-0\.rec: No such file"):
        SegmentWriter(tmp_path / "nowhere", described(), 0)


def _killed_somewhere(recording, chance, blocks, monkeypatch):
    """Record until the process is killed: before a write, or with only some pages written."""
    pwrite, left = os.pwrite, [chance.randrange(blocks)]

    def write_until_killed(file, content, at):
        if left[0]:
            left[0] -= 1
            return pwrite(file, content, at)
        whole_pages_end = (at + chance.randrange(len(content) + 1)) // PAGE * PAGE
        if whole_pages_end > at:
            pwrite(file, content[: whole_pages_end - at], at)
        raise Killed

    monkeypatch.setattr(os, "pwrite", write_until_killed)
    with suppress(Killed):
        record(recording)
    monkeypatch.setattr(os, "pwrite", pwrite)


def test_after_a_kill_at_any_moment_all_written_frames_are_recovered(tmp_path, monkeypatch):
    """The recovered stop is a frame's end at or after the reported position; bytes are equal."""
    stream = OwnStream(tmp_path)
    stream.write(*messages(60, length_max=4_000))
    published = published_bytes(stream, stream.publication.position)
    ends = {0}
    while max(ends) < len(published):
        at = max(ends)
        ends.add(at + (struct.unpack_from("<i", published, at)[0] + 31) // 32 * 32)
    doubtful = 0
    for seed in range(KILL_POINTS):
        chance = random.Random(seed)
        folder = tmp_path / f"killed-{seed}"
        folder.mkdir()
        stream.image.position = 0
        stream.values[:] = 0
        io_max_length, blocks = chance.choice(((1408, 40), (9_000, 12), (TERM, 3)))
        recording = session(stream, folder, io_max_length=io_max_length)
        _killed_somewhere(recording, chance, blocks, monkeypatch)
        assert recording.position < len(published)
        stop = recovered_stop(folder, described())
        doubtful += stop.doubtful_position is not None
        safe = stop.position if stop.doubtful_position is None else stop.doubtful_position
        assert safe in ends
        assert safe >= recording.position
        content = b"".join(each.path.read_bytes() for each in segments_of(folder, 0))
        assert content[:safe] == published[:safe]
        recording.stop()
        for each in folder.iterdir():
            each.unlink()
    assert 0 < doubtful < KILL_POINTS
