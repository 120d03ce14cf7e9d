"""The mark file: its fields, the ownership of a directory, and full disks."""

import errno
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.golden.reader import GOLDEN
from windtunnel.driver.archive.storage import mark_file, mark_file_writer
from windtunnel.driver.archive.storage.mark_file import MarkFileHeader
from windtunnel.driver.archive.storage.mark_file_writer import ActiveArchiveError, MarkFile
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.cnc.error_log import ErrorLog

HEADER = MarkFileHeader(
    pid=77, control_stream_id=10, archive_id=1, control_channel="aeron:udp?endpoint=localhost:8010",
    local_control_channel="aeron:ipc?term-length=64k", aeron_directory="/dev/shm/aeron-me",
)  # fmt: skip


def _golden_header():
    """Return a header that Aeron's tool printed, encoded by the definition of the format."""
    line = (GOLDEN / "archive/describe.txt").read_text().splitlines()[1]
    pairs = dict(item.split("=", 1) for item in line.split(":", 1)[1].split("|"))
    number = {name: int(text) for name, text in pairs.items() if not text.startswith("'")}
    block = struct.pack(
        "<i4x3q5i4xq", number["version"], number["activityTimestamp"], number["startTimestamp"],
        number["pid"], number["controlStreamId"], number["localControlStreamId"],
        number["eventsStreamId"], number["headerLength"], number["errorBufferLength"],
        number["archiveId"],
    ).ljust(128, b"\0")  # fmt: skip
    names = ("controlChannel", "localControlChannel", "eventsChannel", "aeronDirectory")
    texts = [pairs[name].strip("'").encode() for name in names]
    return number, block + b"".join(struct.pack("<I", len(text)) + text for text in texts)


@pytest.mark.parametrize("sbe_header", [struct.pack("<4H", 128, 200, 100, 2), b""])
def test_the_header_of_old_and_new_files_of_aeron_is_read(sbe_header):
    number, content = _golden_header()
    found = mark_file.parse_header((sbe_header + content).ljust(8192, b"\0"), Path("mark"))
    assert (found.activity_timestamp, found.start_timestamp, found.pid) == (
        number["activityTimestamp"], number["startTimestamp"], 21310,
    )  # fmt: skip
    assert (found.error_buffer_length, found.archive_id) == (1 << 20, 1)
    assert found.local_control_channel == "aeron:ipc?term-length=64k"


def test_only_an_active_archive_keeps_others_out_of_its_directory(tmp_path):
    clock = ManualClock()
    first = MarkFile(tmp_path, HEADER, clock)
    assert mark_file.read_header(first.path).version == 0
    first.ready()
    shown = mark_file.read_header(first.path)
    assert (shown.version, shown.activity_timestamp) == (196864, clock.epoch_ms)
    assert (shown.pid, shown.control_channel) == (77, HEADER.control_channel)
    assert first.path.stat().st_size == 1_056_768
    with pytest.raises(ActiveArchiveError, match="another archive has locked the directory"):
        MarkFile(tmp_path, HEADER, clock)
    first.close()
    assert mark_file.read_header(first.path).activity_timestamp == -1
    MarkFile(tmp_path, HEADER, clock).close()


@pytest.mark.parametrize(("age_ms", "is_refused"), [(0, 1), (9_999, 1), (10_000, 0), (-10_000, 0)])
def test_a_killed_archive_counts_as_active_for_ten_seconds(tmp_path, age_ms, is_refused):
    clock = ManualClock()
    archive = MarkFile(tmp_path, HEADER, clock)
    archive.ready()
    content = archive.path.read_bytes()
    archive.close()
    archive.path.write_bytes(content)
    clock.epoch_ms += age_ms
    if is_refused:
        with pytest.raises(ActiveArchiveError, match=f"active {age_ms} ms ago, as process 77"):
            MarkFile(tmp_path, HEADER, clock)
    else:
        MarkFile(tmp_path, HEADER, clock).close()


def test_errors_are_logged_and_those_of_the_previous_archive_are_saved(tmp_path):
    clock = ManualClock()
    archive = MarkFile(tmp_path, HEADER, clock)
    log = ErrorLog(archive.error_log, clock)
    log.record(0, "no room")
    log.record(0, "no room")
    (found,) = mark_file.read_error_log(archive.path)
    assert (found.observation_count, found.text) == (2, "(0) no room")
    archive.close()
    MarkFile(tmp_path, HEADER, clock).close()
    assert mark_file.read_error_log(archive.path) == []
    (kept,) = tmp_path.glob("archive-*-error.log")
    assert kept.read_text().startswith("2 observations from ")
    assert kept.read_text().endswith(": (0) no room\n")


@pytest.mark.parametrize("plant", [os.symlink, os.link])
def test_errors_are_not_saved_through_a_planted_link(tmp_path, plant):
    clock = ManualClock()
    archive = MarkFile(tmp_path, HEADER, clock)
    ErrorLog(archive.error_log, clock).record(0, "no room")
    archive.close()
    (tmp_path / "victim").write_text("precious")
    plant(tmp_path / "victim", tmp_path / f"archive-{clock.now_ms()}-error.log")
    with pytest.raises(StorageError, match=r"cannot write .*-error\.log"):
        MarkFile(tmp_path, HEADER, clock)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_mark_file_elsewhere_is_found_by_its_link_file(tmp_path):
    archive, elsewhere = tmp_path / "archive", tmp_path / "elsewhere"
    archive.mkdir()
    elsewhere.mkdir()
    MarkFile(archive, HEADER, ManualClock(), elsewhere).close()
    assert mark_file.directory_of(archive) == elsewhere
    assert (elsewhere / mark_file.FILE_NAME).exists()
    MarkFile(archive, HEADER, ManualClock()).close()
    assert mark_file.directory_of(archive) == archive


@pytest.mark.parametrize("content", [b"", b" \n", b"\0", b"a\0b"])
def test_an_invalid_link_file_is_reported(tmp_path, content):
    (tmp_path / mark_file.LINK_NAME).write_bytes(content)
    with pytest.raises(StorageError, match="expected the path of a directory"):
        mark_file.directory_of(tmp_path)


def test_a_truncated_header_is_rejected():
    content = HEADER.encode()
    for length in range(len(content)):
        with pytest.raises(StorageError, match="mark: expected"):
            mark_file.parse_header(content[:length], Path("mark"))


def test_a_truncated_mark_file_can_be_removed_as_its_error_says(tmp_path):
    MarkFile(tmp_path, HEADER, ManualClock()).close()
    path = tmp_path / mark_file.FILE_NAME
    os.truncate(path, 60)
    advice = "if no archive is running, remove the file: the next archive writes a new one"
    with pytest.raises(StorageError, match=f"of 136 bytes, found 60; {advice}$"):
        MarkFile(tmp_path, HEADER, ManualClock())
    path.unlink()
    MarkFile(tmp_path, HEADER, ManualClock()).close()


def test_another_storage_version_is_rejected():
    content = bytearray(HEADER.encode())
    struct.pack_into("<i", content, 8, 4 << 16)
    with pytest.raises(StorageError, match=r"expected storage version 3\.x, found 4\.0\.0"):
        mark_file.parse_header(bytes(content), Path("mark"))


def test_a_header_that_does_not_fit_is_rejected(tmp_path):
    long = MarkFileHeader(control_channel="aeron:udp?" + "e" * 8192)
    with pytest.raises(StorageError, match=r"expected a header of at most 8192 bytes, found \d+"):
        MarkFile(tmp_path, long, ManualClock())
    MarkFile(tmp_path, HEADER, ManualClock()).close()


@pytest.fixture
def full_disk(monkeypatch):
    """A disk with no free blocks. Returns a function that sets the free space."""
    free = [0]
    real_allocate, real_write = os.posix_fallocate, mark_file_writer.write_all

    def allocate(file, at, length):
        needed = at + length - os.fstat(file).st_blocks * 512
        if needed > free[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real_allocate(file, at, length)

    def write(file, path, content, at):
        real_write(file, path, content[: free[0]], at)
        if len(content) > free[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    monkeypatch.setattr(mark_file_writer, "write_all", write)
    return free


def test_on_a_full_disk_the_file_of_the_previous_archive_is_reused(tmp_path, request):
    clock = ManualClock()
    MarkFile(tmp_path, HEADER, clock).close()
    before = os.stat(tmp_path / mark_file.FILE_NAME)
    request.getfixturevalue("full_disk")
    archive = MarkFile(tmp_path, replace(HEADER, pid=78, control_channel=""), clock)
    assert mark_file.read_header(archive.path).version == 0
    archive.ready()
    shown = mark_file.read_header(archive.path)
    assert (shown.version, shown.pid, shown.control_channel) == (196864, 78, "")
    assert shown.aeron_directory == HEADER.aeron_directory
    after = os.stat(archive.path)
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    archive.close()


def test_on_a_full_disk_errors_that_cannot_be_copied_stay_in_the_log(tmp_path, request):
    clock = ManualClock()
    archive = MarkFile(tmp_path, HEADER, clock)
    ErrorLog(archive.error_log, clock).record(0, "cannot write: No space left on device")
    archive.close()
    free = request.getfixturevalue("full_disk")
    archive = MarkFile(tmp_path, HEADER, clock)
    assert not list(tmp_path.glob("archive-*-error.log"))
    ErrorLog(archive.error_log, clock).record(0, "another")
    texts = [each.text for each in mark_file.read_error_log(archive.path)]
    assert texts == ["(0) cannot write: No space left on device", "(0) another"]
    archive.close()
    free[0] = 1 << 20
    MarkFile(tmp_path, HEADER, clock).close()
    assert mark_file.read_error_log(archive.path) == []
    (kept,) = tmp_path.glob("archive-*-error.log")
    assert kept.read_text().count("\n") == 2


@pytest.mark.parametrize("was", ["nothing", "shorter", "longer", "sparse"])
def test_on_a_full_disk_the_error_log_is_limited_to_the_space_available(tmp_path, request, was):
    clock, lengths = ManualClock(), {"shorter": 1 << 20, "longer": 1 << 21}
    if was in lengths:
        other = replace(HEADER, error_buffer_length=lengths[was])
        MarkFile(tmp_path, other, clock).close()
    elif was == "sparse":
        # As long as Aeron creates it.
        MarkFile(tmp_path, HEADER, clock).close()
        path = tmp_path / mark_file.FILE_NAME
        path.write_bytes(path.read_bytes()[:8192])
        os.truncate(path, 1_056_768)
    free = request.getfixturevalue("full_disk")
    free[0] = 12_288
    wanted = replace(HEADER, error_buffer_length=3 << 19)
    archive = MarkFile(tmp_path, HEADER if was == "sparse" else wanted, clock)
    archive.ready()
    shown = mark_file.read_header(archive.path)
    expected = {"shorter": 1 << 20, "longer": 3 << 19}.get(was, 4096)
    assert shown.error_buffer_length == archive.error_log.size == expected
    ErrorLog(archive.error_log, clock).record(0, "there")
    assert [each.text for each in mark_file.read_error_log(archive.path)] == ["(0) there"]
    archive.close()


def test_a_full_disk_without_a_mark_file_is_reported(tmp_path, full_disk):
    full_disk[0] = 12_287
    expected = r"archive-mark\.dat: No space left on device; free at least 12288 bytes in "
    with pytest.raises(StorageError, match=expected):
        MarkFile(tmp_path, HEADER, ManualClock())
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_length_is_replaced_if_there_is_space(tmp_path):
    clock = ManualClock()
    for length in (1 << 20, 1 << 21, 1 << 20):
        archive = MarkFile(tmp_path, replace(HEADER, error_buffer_length=length), clock)
        assert archive.error_log.size == length
        assert archive.path.stat().st_size == length + 8192
        archive.close()


@pytest.mark.parametrize("call", ["rename", "unlink", "open"])
def test_a_directory_that_cannot_be_written_is_reported(tmp_path, monkeypatch, call):
    def refuse(path, *rest, **named):
        if call == "open" and not rest[0] & os.O_CREAT:
            return real(path, *rest, **named)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    if call == "unlink":
        (tmp_path / "archive-mark.new").touch()
    real = getattr(os, call)
    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(StorageError, match="Read-only file system"):
            MarkFile(tmp_path, HEADER, ManualClock())
    MarkFile(tmp_path, HEADER, ManualClock()).close()
