"""An archive that restarts, or cannot start. Cases D1 to D5."""

import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.unit.driver.archive.server.own_archive import Ok, own_archive, settings
from tests.unit.driver.archive.server.own_stream import FRAME, IPC, STREAM, Reader, message
from tests.unit.driver.archive.storage import own_recording
from tests.unit.driver.client.invoked_client import world
from windtunnel.driver.archive.conductor.archive_conductor import ArchiveFailure
from windtunnel.driver.archive.protocol.codes import NULL_VALUE, RecordingSignal
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest
from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.mark_file import read_header
from windtunnel.driver.archive.storage.mark_file_writer import ActiveArchiveError
from windtunnel.driver.archive.tool.failure import TIMED_OUT, code_of
from windtunnel.driver.archive.tool.program import main
from windtunnel.driver.base.errors import ConfigurationError, StorageError

LIVENESS_NS = 10_000_000_000
SEGMENT = own_recording.SEGMENT


@contextmanager
def killed_archive(tmp_path, monkeypatch, count):
    """Copy an archive's folder to `killed` during a recording, as if it was killed there."""
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        client.live_recording(count)
        shutil.copytree(env.directory, tmp_path / "killed")
        yield env


def test_a_killed_archive_restarts_after_its_liveness_timeout(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 200) as env:
        with pytest.raises(ActiveArchiveError, match=r"was active \d+ ms ago"):
            env.beside("killed", archive_id=9)
        assert read_header(tmp_path / "killed" / mark_file.FILE_NAME).activity_timestamp > 0
        env.run_for(LIVENESS_NS, 500_000_000)
        env.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            found = catalog.descriptor(0)
        # 62 frames of 1056 bytes fit into a term of 64 KiB, and 14 more are in the fourth.
        assert found.stop_position == 3 * 65_536 + 14 * FRAME
        assert found.stop_timestamp > found.start_timestamp + 9_000
        client = env.connect_client(stream=110, response_stream=120)
        reader = Reader(client)
        client.request_replay(0)
        assert reader.until_end() == [message(number) for number in range(200)]


def test_a_recording_killed_before_any_data_stops_at_its_start_position(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 0) as env:
        env.run_for(LIVENESS_NS, 500_000_000)
        env.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            assert catalog.descriptor(0).stop_position == 0


@pytest.mark.parametrize(("length", "kept"), [(0, 0), (4 * FRAME, FRAME)])
def test_a_short_last_segment_file_is_extended(tmp_path, monkeypatch, length, kept):
    """The archive was killed between creating and extending the file."""
    with killed_archive(tmp_path, monkeypatch, 125) as env:
        first, last = sorted((tmp_path / "killed").glob("0-*.rec"))
        with last.open("r+b") as file:
            file.truncate(length)
        env.run_for(LIVENESS_NS, 500_000_000)
        env.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            assert catalog.descriptor(0).stop_position == SEGMENT + kept
        assert (first.stat().st_size, last.stat().st_size) == (SEGMENT, SEGMENT)
        assert not any(last.read_bytes()[kept:])


def test_an_archive_with_a_possibly_torn_last_frame_does_not_start(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 4) as env:
        with open(tmp_path / "killed" / "0-0.rec", "r+b") as file:
            file.seek(3 * FRAME + 32)
            file.write(bytes(FRAME - 32))
        with pytest.raises(ActiveArchiveError):
            env.beside("killed", archive_id=9)
        env.run_for(LIVENESS_NS, 500_000_000)
        with pytest.raises(StorageError, match="windtunnel archive verify 0"):
            env.beside("killed", archive_id=9, local_control_stream_id=110)
        # A failed start clears the timestamp: the next one need not wait.
        assert read_header(tmp_path / "killed" / mark_file.FILE_NAME).activity_timestamp == -1


def test_a_cleanly_closed_archive_restarts_at_once(env, client):
    end = client.live_recording(5).end
    env.end()
    env.archive.close()
    assert client.signals()[-1] == (RecordingSignal.STOP.name, 0, end)
    assert read_header(env.directory / mark_file.FILE_NAME).activity_timestamp == -1
    env.start()
    assert env.connect_client(response_stream=21).request(ArchiveIdRequest) == Ok(77)
    with Catalog(env.directory) as catalog:
        assert catalog.descriptor(0).stop_position == end


def test_an_abandoned_archive_is_like_a_killed_one(env, client):
    live = client.live_recording(5)
    env.archive.abandon()
    env.archive.close()
    with Catalog(env.directory) as catalog:
        assert catalog.descriptor(0).stop_position == NULL_VALUE
    with pytest.raises(ActiveArchiveError, match=r"was active \d+ ms ago"):
        env.beside("archive", archive_id=9, local_control_stream_id=110)
    env.world.both(21, 500_000_000)  # Nothing invokes the archive.
    env.beside("archive", archive_id=9, local_control_stream_id=110)
    with Catalog(env.directory) as catalog:
        assert catalog.descriptor(0).stop_position == live.end


def test_two_archives_share_neither_a_directory_nor_an_id(env):
    env.run_for(2 * LIVENESS_NS, 500_000_000)
    with pytest.raises(ActiveArchiveError):
        env.beside("archive", archive_id=9)
    with pytest.raises(ConfigurationError, match="AERON_ARCHIVE_ID=77"):
        env.beside("other")
    assert env.connect_client().request(ArchiveIdRequest) == Ok(77)


def test_deletion_on_start_deletes_only_the_archives_files(env):
    env.connect_client().stopped_recording(5)
    env.end()
    (env.directory / "precious.txt").write_text("mine")
    env.settings = replace(env.settings, dir_delete_on_start=True)
    env.start()
    assert [each.name for each in env.directory.glob("*.rec")] == []
    assert (env.directory / "precious.txt").read_text() == "mine"
    with pytest.raises(ActiveArchiveError, match="cannot delete the files"):
        env.start()


def test_an_archive_with_a_damaged_catalog_does_not_start(tmp_path, monkeypatch):
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "archive.catalog").write_bytes(b"\xff" * 4096)
    with (
        pytest.raises(StorageError, match=r"archive\.catalog"),
        own_archive(tmp_path, monkeypatch),
    ):
        pass
    assert (folder / "archive.catalog").read_bytes() == b"\xff" * 4096


def test_missing_files_of_one_recording_do_not_affect_others(env, client):
    client.stopped_recording(5)
    client.stopped_recording(5, stream=STREAM + 1)
    (env.directory / "0-0.rec").unlink()
    env.end()
    env.start()
    again = env.connect_client(response_stream=21)
    reader = Reader(again)
    again.request_replay(1)
    assert len(reader.until_end()) == 5


def test_an_archive_ends_with_its_driver(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as made:
        client = made.connect()
        archive = Archive(settings(tmp_path), made.driver.clock, client)
        archive.invoke()
        made.driver.cnc.set_closed()
        made.driver.clock.advance(1_000_000_000)
        with pytest.raises(ArchiveFailure, match="shut down") as caught:
            archive.invoke()
        assert code_of(caught.value) == TIMED_OUT
        archive.close()
        assert read_header(tmp_path / "archive" / mark_file.FILE_NAME).activity_timestamp == -1


def test_a_directory_that_cannot_be_created_is_reported(tmp_path, monkeypatch):
    (tmp_path / "archive").write_text("a file")
    with (
        pytest.raises(StorageError, match="cannot create"),
        own_archive(tmp_path, monkeypatch),
    ):
        pass


def _contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.rec")}


@pytest.mark.parametrize("content", [None, b"", bytes(4096)], ids=["missing", "empty", "zeros"])
def test_an_archive_without_its_catalog_does_not_start_beside_recordings(
    tmp_path, monkeypatch, content
):
    folder = tmp_path / "archive"
    folder.mkdir()
    own_recording.write(folder, 0, own_recording.stream([1000] * 200))
    own_recording.write(folder, 3, own_recording.stream([1000] * 20))
    if content is not None:
        (folder / "archive.catalog").write_bytes(content)
    before = _contents(folder)
    with pytest.raises(StorageError) as caught, own_archive(tmp_path, monkeypatch):
        pass
    assert str(folder) in str(caught.value)
    assert "3 segment files of 2 recordings" in str(caught.value)
    assert f"`windtunnel archive recover --dir {folder}`" in str(caught.value)
    assert _contents(folder) == before
    assert (folder / "archive.catalog").exists() == (content is not None)


@pytest.mark.parametrize("lost", ["length", "last entry", "id"])
def test_an_archive_whose_catalog_hides_recordings_does_not_start(env, client, lost):
    for index in range(3):
        client.stopped_recording(5, stream=STREAM + index)
    env.end()
    path = env.directory / "archive.catalog"
    with Catalog(env.directory) as catalog:
        offsets = [entry.offset for entry in catalog.entries()]
        end = catalog._end
    before, content = _contents(env.directory), bytearray(path.read_bytes())
    if lost == "length":
        content[offsets[1] : offsets[1] + 4] = bytes(4)
    elif lost == "last entry":
        content[offsets[2] : end] = bytes(end - offsets[2])
    else:
        content[offsets[2] + 48] = 7
        content[8] = 8
    path.write_bytes(content)
    with pytest.raises(StorageError, match="windtunnel archive recover --dir") as caught:
        env.start()
    expected = (
        "zeros at" if lost == "length" else "none for 1 segment files of 1 recordings: 2-0.rec"
    )
    assert expected in str(caught.value)
    assert _contents(env.directory) == before
    assert path.read_bytes() == content
    assert main(["recover", "--dir", str(env.directory)]) == 0
    # The driver removes the client of the archive that did not start.
    env.world.both(20)
    env.start()
    assert _contents(env.directory) == before
    again = env.connect_client(response_stream=21)
    for recording_id in range(3):
        reader = Reader(again, stream=700 + recording_id)
        again.request_replay(recording_id, replay_stream_id=700 + recording_id)
        assert len(reader.until_end()) == 5


def test_a_file_created_while_the_archive_runs_is_not_overwritten(env, client):
    path = env.directory / "0-0.rec"
    path.write_bytes(b"precious")
    response = client.start()
    publication = client.aeron.add_exclusive_publication(IPC, STREAM)
    env.until(lambda: len(client.responses_to(response.correlation_id)) == 2)
    refusal = client.responses_to(response.correlation_id)[1]
    assert "cannot create" in refusal.error_message
    assert "0-0.rec: File exists" in refusal.error_message
    assert path.read_bytes() == b"precious"
    publication.close()
    assert client.live_recording(3, stream=STREAM + 1).recording_id == 1
