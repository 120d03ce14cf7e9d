"""An archive on a disk that is full or read-only, with a real small tmpfs.

A write error is reported to the client that requested the recording; nothing else is affected.
"""

import shutil
import subprocess

import pytest

from tests.archive.archives import SEGMENT, TERM, make_as_old, until
from tests.archive.conversation import ControlSession
from tests.archive.streams import FRAME, FRAMES_PER_TERM, Recorded, message, replayed
from tests.peer.small_disk import fill, small_disk
from windtunnel.driver.archive.protocol.codes import ControlResponseCode, ErrorCode, RecordingSignal
from windtunnel.driver.archive.protocol.requests import PurgeRecordingRequest

SEGMENTS = 24
"""The number of segment files that fit on the disk, next to the catalog and the mark file."""
OTHERS_BYTES = 4 << 20
"""The size of the catalog and the mark file, rounded up."""


@pytest.fixture
def disk(tmp_path):
    """A file system for the archive's files."""
    folder = tmp_path / "own" / "archive"
    folder.mkdir(parents=True)
    with small_disk(folder, SEGMENTS * SEGMENT + OTHERS_BYTES) as mounted:
        yield mounted


@pytest.fixture
def archive(own_archive, disk):
    made = own_archive({"aeron.archive.low.storage.space.threshold": 0}).start()
    assert made.directory == disk
    return made


@pytest.fixture
def session(archive):
    made = ControlSession(archive)
    yield made
    made.close()


def publish_until_refused(recorded):
    """Send messages until the archive reports that it cannot record them. Returns that response."""

    def failure():
        content = message(recorded.number)
        if recorded.publication.offer(content) > 0:
            recorded.sent.append(content)
            recorded.number += 1
        errors = [each for each in recorded.session.received(recorded.request)
                  if getattr(each, "code", None) == ControlResponseCode.ERROR]  # fmt: skip
        return next(iter(errors), None)

    return until(failure, "the error of the archive")


def check_kept(session, recorded, stop_position):
    """Check that a recording that ended early has every message before its end."""
    kept = replayed(session, recorded.recording_id)
    assert kept == recorded.sent[: len(kept)]
    terms, rest = divmod(stop_position, TERM)
    assert len(kept) == terms * FRAMES_PER_TERM + min(rest // FRAME, FRAMES_PER_TERM)


@pytest.mark.full
def test_a_full_disk_ends_one_recording_and_affects_no_other(session, kind):
    if kind == "java":
        pytest.skip("the error log of Java's archive is a sparse file: its conductor fails")
    done = Recorded(session).send(300)
    done.stop()
    full = Recorded(session)
    error = publish_until_refused(full)
    assert ErrorCode(error.relevant_id) == ErrorCode.STORAGE_SPACE
    stopped = session.signal(RecordingSignal.STOP, full.request)
    assert stopped.position > (SEGMENTS // 2) * SEGMENT
    check_kept(session, full, stopped.position)
    assert replayed(session, done.recording_id) == done.sent
    full.publication.close()
    # Recording works again after space was freed.
    deleted = session.send(PurgeRecordingRequest, recording_id=full.recording_id)
    session.signal(RecordingSignal.DELETE, deleted)
    later = Recorded(session).send(300)
    later.stop()
    assert replayed(session, later.recording_id) == later.sent


@pytest.mark.full
def test_an_archive_starts_on_a_full_disk_and_frees_space(archive, session, disk, kind):
    if kind == "java":
        pytest.skip("the error log of Java's archive is a sparse file: its conductor fails")
    done = Recorded(session).send(300)
    done.stop()
    full = Recorded(session)
    publish_until_refused(full)
    session.signal(RecordingSignal.STOP, full.request)
    session.close()
    archive.kill()
    fill(disk)
    make_as_old(disk / "archive-mark.dat", 11_000)
    shutil.rmtree(archive.folder / "aeron")
    new_session = ControlSession(archive.start())
    assert replayed(new_session, done.recording_id) == done.sent
    deleted = new_session.send(PurgeRecordingRequest, recording_id=full.recording_id)
    new_session.signal(RecordingSignal.DELETE, deleted)
    later = Recorded(new_session).send(300)
    later.stop()
    assert replayed(new_session, later.recording_id) == later.sent
    new_session.close()


def test_a_directory_that_becomes_read_only_is_an_error_of_one_line(own_archive, disk, kind):
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive)).send(10)
    recorded.stop()
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    before = {path.name: path.read_bytes() for path in disk.iterdir()}
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    archive.launch()
    code = archive.exit_code()
    if kind == "ours":
        assert code == 2
        assert "Traceback" not in archive.log
        lines = [line for line in archive.log.splitlines() if "windtunnel archive:" in line]
        assert len(lines) == 1
        assert f"{disk}: expected a writable directory: Read-only" in lines[0]
        assert "aeron.archive.dir" in lines[0]
    assert code != 0
    assert {path.name: path.read_bytes() for path in disk.iterdir()} == before


def test_a_directory_that_cannot_be_written_is_named(own_archive, disk):
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    archive = own_archive()
    archive.launch()
    assert archive.exit_code() != 0
    assert str(disk) in archive.log
    assert "ead-only file system" in archive.log
