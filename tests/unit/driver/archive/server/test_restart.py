"""An archive that is restarted, or cannot start. Cases D1 to D5."""

import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.unit.driver.archive.server.own_archive import Ok, own_archive, settings
from tests.unit.driver.archive.server.own_stream import FRAME, IPC, STREAM, Reader, message
from tests.unit.driver.archive.storage import own_recording
from tests.unit.driver.client.invoked_client import world
from windtunnel.driver.archive.conductor.archive_conductor import ArchiveFailure
from windtunnel.driver.archive.protocol.codes import RecordingSignal
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
    """Return the state after an archive was killed while recording: (own, its folder)."""
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        talker.live_recording(count)
        shutil.copytree(own.directory, tmp_path / "killed")
        yield own


def test_one_that_was_killed_is_given_up_after_a_while(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 200) as own:
        with pytest.raises(ActiveArchiveError, match=r"was active \d+ ms ago"):
            own.beside("killed", archive_id=9)
        assert read_header(tmp_path / "killed" / mark_file.FILE_NAME).activity_timestamp > 0
        own.run_for(LIVENESS_NS, 500_000_000)
        own.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            found = catalog.descriptor(0)
        # 62 frames of 1056 bytes fit into a term of 64 KiB, and 14 more are in the fourth.
        assert found.stop_position == 3 * 65_536 + 14 * FRAME
        assert found.stop_timestamp > found.start_timestamp + 9_000
        talker = own.talk(stream=110, response_stream=120)
        reader = Reader(talker)
        talker.ask_replay(0)
        assert reader.until_end() == [message(number) for number in range(200)]


def test_one_that_was_killed_before_any_data_stopped_where_it_started(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 0) as own:
        own.run_for(LIVENESS_NS, 500_000_000)
        own.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            assert catalog.descriptor(0).stop_position == 0


@pytest.mark.parametrize(("length", "kept"), [(0, 0), (4 * FRAME, FRAME)])
def test_a_last_file_without_its_length_gets_it(tmp_path, monkeypatch, length, kept):
    """As if the archive was killed between creating and extending the file."""
    with killed_archive(tmp_path, monkeypatch, 125) as own:
        first, last = sorted((tmp_path / "killed").glob("0-*.rec"))
        with last.open("r+b") as file:
            file.truncate(length)
        own.run_for(LIVENESS_NS, 500_000_000)
        own.beside("killed", archive_id=9, local_control_stream_id=110)
        with Catalog(tmp_path / "killed") as catalog:
            assert catalog.descriptor(0).stop_position == SEGMENT + kept
        assert (first.stat().st_size, last.stat().st_size) == (SEGMENT, SEGMENT)
        assert not any(last.read_bytes()[kept:])


def test_a_last_frame_that_may_be_torn_is_left_to_a_person(tmp_path, monkeypatch):
    with killed_archive(tmp_path, monkeypatch, 4) as own:
        with open(tmp_path / "killed" / "0-0.rec", "r+b") as file:
            file.seek(3 * FRAME + 32)
            file.write(bytes(FRAME - 32))
        with pytest.raises(ActiveArchiveError):
            own.beside("killed", archive_id=9)
        own.run_for(LIVENESS_NS, 500_000_000)
        with pytest.raises(StorageError, match="windtunnel archive verify 0"):
            own.beside("killed", archive_id=9, local_control_stream_id=110)
        # A start that failed says so: the next try need not wait.
        assert read_header(tmp_path / "killed" / mark_file.FILE_NAME).activity_timestamp == -1


def test_one_that_ended_in_good_order_starts_again_at_once(own, talker):
    end = talker.live_recording(5).end
    own.end()
    own.archive.close()
    assert talker.signals()[-1] == (RecordingSignal.STOP.name, 0, end)
    assert read_header(own.directory / mark_file.FILE_NAME).activity_timestamp == -1
    own.start()
    assert own.talk(response_stream=21).ask(ArchiveIdRequest) == Ok(77)
    with Catalog(own.directory) as catalog:
        assert catalog.descriptor(0).stop_position == end


def test_two_archives_do_not_share_a_directory_nor_an_id(own):
    own.run_for(2 * LIVENESS_NS, 500_000_000)
    with pytest.raises(ActiveArchiveError):
        own.beside("archive", archive_id=9)
    with pytest.raises(ConfigurationError, match="AERON_ARCHIVE_ID=77"):
        own.beside("other")
    assert own.talk().ask(ArchiveIdRequest) == Ok(77)


def test_what_is_deleted_on_start_is_the_archives_own(own):
    own.talk().stopped_recording(5)
    own.end()
    (own.directory / "precious.txt").write_text("mine")
    own.settings = replace(own.settings, dir_delete_on_start=True)
    own.start()
    assert [each.name for each in own.directory.glob("*.rec")] == []
    assert (own.directory / "precious.txt").read_text() == "mine"
    with pytest.raises(ActiveArchiveError, match="cannot delete the files"):
        own.start()


def test_a_damaged_catalog_is_not_started_on(tmp_path, monkeypatch):
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "archive.catalog").write_bytes(b"\xff" * 4096)
    with (
        pytest.raises(StorageError, match=r"archive\.catalog"),
        own_archive(tmp_path, monkeypatch),
    ):
        pass
    assert (folder / "archive.catalog").read_bytes() == b"\xff" * 4096


def test_a_recording_whose_files_are_missing_leaves_the_others_alone(own, talker):
    talker.stopped_recording(5)
    talker.stopped_recording(5, stream=STREAM + 1)
    (own.directory / "0-0.rec").unlink()
    own.end()
    own.start()
    again = own.talk(response_stream=21)
    reader = Reader(again)
    again.ask_replay(1)
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


def test_a_directory_that_cannot_be_made_is_said(tmp_path, monkeypatch):
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
def test_an_archive_whose_catalog_hides_recordings_does_not_start(own, talker, lost):
    for index in range(3):
        talker.stopped_recording(5, stream=STREAM + index)
    own.end()
    path = own.directory / "archive.catalog"
    with Catalog(own.directory) as catalog:
        offsets = [entry.offset for entry in catalog.entries()]
        end = catalog._end
    before, content = _contents(own.directory), bytearray(path.read_bytes())
    if lost == "length":
        content[offsets[1] : offsets[1] + 4] = bytes(4)
    elif lost == "last entry":
        content[offsets[2] : end] = bytes(end - offsets[2])
    else:
        content[offsets[2] + 48] = 7
        content[8] = 8
    path.write_bytes(content)
    with pytest.raises(StorageError, match="windtunnel archive recover --dir") as caught:
        own.start()
    expected = (
        "zeros at" if lost == "length" else "none for 1 segment files of 1 recordings: 2-0.rec"
    )
    assert expected in str(caught.value)
    assert _contents(own.directory) == before
    assert path.read_bytes() == content
    assert main(["recover", "--dir", str(own.directory)]) == 0
    # The driver forgets the archive that did not start.
    own.made.both(20)
    own.start()
    assert _contents(own.directory) == before
    again = own.talk(response_stream=21)
    for recording_id in range(3):
        reader = Reader(again, stream=700 + recording_id)
        again.ask_replay(recording_id, replay_stream_id=700 + recording_id)
        assert len(reader.until_end()) == 5


def test_a_file_that_came_while_the_archive_runs_is_not_recorded_into(own, talker):
    path = own.directory / "0-0.rec"
    path.write_bytes(b"precious")
    answer = talker.start()
    publication = talker.client.add_exclusive_publication(IPC, STREAM)
    own.until(lambda: len(talker.answers(answer.correlation_id)) == 2)
    refusal = talker.answers(answer.correlation_id)[1]
    assert "cannot create" in refusal.error_message
    assert "0-0.rec: File exists" in refusal.error_message
    assert path.read_bytes() == b"precious"
    publication.close()
    assert talker.live_recording(3, stream=STREAM + 1).recording_id == 1
