"""Segment files are truncated, purged, detached, attached, deleted and migrated.

Cases T1 to T10 and G1 to G15.
"""

import shutil
from dataclasses import replace

import pytest

from tests.unit.driver.archive.server.own_archive import SEGMENT, Err, Ok, own_archive
from tests.unit.driver.archive.server.own_stream import Reader
from tests.unit.driver.archive.storage import own_recording
from windtunnel.driver.archive.protocol.requests import (
    AttachSegmentsRequest,
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    MigrateSegmentsRequest,
    PurgeRecordingRequest,
    PurgeSegmentsRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter

TERM = own_recording.TERM


class Stored:
    """Recordings that exist before the archive starts, with a frame every 1024 bytes."""

    def __init__(self, folder):
        self.directory = folder / "archive"
        self.directory.mkdir()
        CatalogWriter.create(self.directory).close()

    def add(self, begin, end, **changed):
        """Add a stopped recording from one position to another."""
        with CatalogWriter(self.directory) as catalog:
            recording_id = catalog.add(own_recording.descriptor(start=begin, stop=end, **changed))
        frames = own_recording.stream([992] * ((end - begin) // 1024), start=begin)
        assert own_recording.write(self.directory, recording_id, frames, begin) == end
        return recording_id

    def files(self, recording_id=0):
        found = self.directory.glob(f"{recording_id}-*.rec*")
        return sorted((each.name for each in found), key=lambda name: (len(name), name))

    def entry(self, recording_id=0):
        with Catalog(self.directory) as catalog:
            return catalog.entry(recording_id)

    def range(self, recording_id=0):
        found = self.entry(recording_id).descriptor
        return found.start_position, found.stop_position


@pytest.fixture
def stored(tmp_path):
    return Stored(tmp_path)


def is_settled(env, client, response, *, recording_id=0):
    """Wait for the DELETE signal after a response."""
    env.until(lambda: ("DELETE", recording_id, -1) in client.summaries(response.correlation_id))
    return client.summaries(response.correlation_id)[-1] == ("DELETE", recording_id, -1)


def names(*bases, recording_id=0):
    return [f"{recording_id}-{base}.rec" for base in bases]


THREE = 3 * SEGMENT - 10_240
"""The stop position of a recording with three files."""


@pytest.mark.parametrize(
    ("position", "code"),
    [(TERM - 1024, 16), (THREE + 1024, 16), (-32, 16), (SEGMENT + 1000, 16), (SEGMENT + 1056, 0)],
)
def test_an_invalid_truncation_is_rejected_and_changes_nothing(
    stored, tmp_path, monkeypatch, position, code
):
    stored.add(TERM, TERM + THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        wanted = position if position < SEGMENT else position + TERM
        values = {"recording_id": 0, "position": wanted}
        assert client.request(TruncateRecordingRequest, **values) == Err(code)
        assert stored.range() == (TERM, TERM + THREE)
        assert client.request(TruncateRecordingRequest, recording_id=1, position=0) == Err(5)


@pytest.mark.parametrize(
    ("position", "count", "left"),
    [
        (THREE, 0, (0, SEGMENT, 2 * SEGMENT)),
        (SEGMENT + 2048, 1, (0, SEGMENT)),
        (SEGMENT, 2, (0,)),
        (0, 3, ()),
    ],
)
def test_a_recording_is_truncated(stored, tmp_path, monkeypatch, position, count, left):
    stored.add(0, THREE)
    whole = b"".join((stored.directory / name).read_bytes() for name in stored.files())
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        response = client.request(TruncateRecordingRequest, recording_id=0, position=position)
        assert response == Ok(count)
        assert is_settled(env, client, response)
        assert stored.range() == (0, position)
        assert stored.files() == names(*left)
        content = b"".join((stored.directory / name).read_bytes() for name in stored.files())
        assert len(content) == len(left) * SEGMENT
        assert content[:position] == whole[:position]
        assert not any(content[position:])


def test_a_truncation_ends_replays_first(stored, tmp_path, monkeypatch):
    stored.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        reader = Reader(client)
        client.request_replay(0)
        reader.until(lambda: reader.seen)
        response = client.request(TruncateRecordingRequest, recording_id=0, position=1024)
        assert response == Ok(2)
        assert is_settled(env, client, response)
        env.until(lambda: not reader.subscription.images)


def test_a_replay_of_the_remaining_data_does_not_stop_the_deletion(stored, tmp_path, monkeypatch):
    stored.add(0, 40 * SEGMENT)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        reader = Reader(client)
        response = client.request(TruncateRecordingRequest, recording_id=0, position=SEGMENT)
        assert response == Ok(40)
        replay = client.request_replay(0)
        assert replay == Ok(replay.relevant_id)
        assert len(stored.files()) > 1
        # The reader never polls, so the replay stays active.
        assert is_settled(env, client, response)
        assert stored.files() == names(0)
        assert reader.subscription.images
        assert client.request(TruncateRecordingRequest, recording_id=0, position=SEGMENT) == Ok(1)


def test_an_active_recording_is_neither_truncated_nor_purged(env, client):
    client.live_recording()
    assert client.request(TruncateRecordingRequest, recording_id=0, position=0) == Err(2)
    assert client.request(PurgeRecordingRequest, recording_id=0) == Err(2)


def test_a_recording_is_purged_once_it_has_no_replay(stored, tmp_path, monkeypatch):
    stored.add(0, THREE)
    (stored.directory / "0-999424.rec.del").write_bytes(b"left by an older archive")
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        reader = Reader(client)
        client.request_replay(0)
        reader.until(lambda: reader.seen)
        assert client.request(PurgeRecordingRequest, recording_id=0) == Err(2)
        reader.until_end()
        env.run_for(100_000_000)
        response = client.request(PurgeRecordingRequest, recording_id=0)
        assert response == Ok(4)
        assert is_settled(env, client, response)
        assert stored.files() == []
        assert stored.entry().state == 2
        assert client.request(PurgeRecordingRequest, recording_id=0) == Err(5)


@pytest.mark.parametrize(
    ("position", "bound"),
    [(TERM, "base"), (0, "below"), (3 * SEGMENT, "above"), (-SEGMENT, "below")],
)
def test_a_start_position_that_is_no_segment_base_is_rejected(
    stored, tmp_path, monkeypatch, position, bound
):
    stored.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        for kind in (DetachSegmentsRequest, PurgeSegmentsRequest):
            response = client.request(kind, recording_id=0, new_start_position=position)
            assert response == Err(0)
            assert bound in response.error_message


def test_segment_files_are_detached_and_attached(stored, tmp_path, monkeypatch):
    stored.add(4096, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        assert client.request(DetachSegmentsRequest, **wanted) == Ok(0)
        assert stored.range() == (2 * SEGMENT, THREE)
        assert stored.files() == names(0, SEGMENT, 2 * SEGMENT)
        assert client.request_replay(0, position=4096) == Err(16)
        assert client.request(AttachSegmentsRequest, recording_id=0) == Ok(2)
        assert stored.range() == (4096, THREE)
        assert client.request(AttachSegmentsRequest, recording_id=0) == Ok(0)


def test_nothing_is_attached_before_the_beginning_of_a_stream(stored, tmp_path, monkeypatch):
    stored.add(SEGMENT + 4096, THREE)
    path = stored.directory / f"0-{SEGMENT}.rec"
    first = path.read_bytes()
    # A file that would fit, but for the gap behind it.
    own_recording.write(stored.directory, 0, own_recording.stream([992] * 100))
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        assert client.request(DetachSegmentsRequest, **wanted) == Ok(0)
        assert client.request(AttachSegmentsRequest, recording_id=0) == Ok(1)
        assert stored.range() == (SEGMENT + 4096, THREE)
        assert path.read_bytes() == first


@pytest.mark.parametrize("damage", ["short", "zero", "stream", "term"])
def test_a_damaged_file_is_not_attached(stored, tmp_path, monkeypatch, damage):
    stored.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        client.request(DetachSegmentsRequest, recording_id=0, new_start_position=2 * SEGMENT)
        path = stored.directory / f"0-{SEGMENT}.rec"
        content = bytearray(path.read_bytes())
        if damage == "short":
            content = content[:-1]
        elif damage == "zero":
            content = bytearray(len(content))
        elif damage == "stream":
            content[16] ^= 1
        else:
            content[20] ^= 1
        path.write_bytes(content)
        assert client.request(AttachSegmentsRequest, recording_id=0) == Err(0)
        assert stored.range() == (2 * SEGMENT, THREE)


def test_detached_segment_files_are_deleted(stored, tmp_path, monkeypatch):
    stored.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        none = client.request(DeleteDetachedSegmentsRequest, recording_id=0)
        assert none == Ok(0)
        assert is_settled(env, client, none)
        client.request(DetachSegmentsRequest, recording_id=0, new_start_position=SEGMENT)
        response = client.request(DeleteDetachedSegmentsRequest, recording_id=0)
        assert response == Ok(1)
        assert is_settled(env, client, response)
        assert stored.files() == names(SEGMENT, 2 * SEGMENT)


def test_segments_are_purged(stored, tmp_path, monkeypatch):
    stored.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        response = client.request(PurgeSegmentsRequest, **wanted)
        assert response == Ok(2)
        assert is_settled(env, client, response)
        assert stored.range() == (2 * SEGMENT, THREE)
        assert stored.files() == names(2 * SEGMENT)


def test_segment_bases_start_at_the_term_of_the_start_position(stored, tmp_path, monkeypatch):
    stored.add(TERM + 1024, TERM + THREE)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        assert stored.files() == names(TERM, TERM + SEGMENT, TERM + 2 * SEGMENT)
        for position, expected in ((SEGMENT, Err(0)), (TERM + SEGMENT, Ok(0))):
            wanted = {"recording_id": 0, "new_start_position": position}
            assert client.request(DetachSegmentsRequest, **wanted) == expected


def test_a_live_recording_is_detached_only_before_its_active_segment(env, client):
    client.live_recording(150)
    for position, expected in ((2 * SEGMENT, Err(0)), (SEGMENT, Ok(0))):
        wanted = {"recording_id": 0, "new_start_position": position}
        assert client.request(DetachSegmentsRequest, **wanted) == expected


@pytest.mark.parametrize("is_before", [True, False])
def test_segments_are_migrated(stored, tmp_path, monkeypatch, is_before):
    early, late = stored.add(0, 2 * SEGMENT), stored.add(2 * SEGMENT, 3 * SEGMENT)
    (stored.directory / f"{early}-{2 * SEGMENT}.rec").unlink()
    source, destination = (early, late) if is_before else (late, early)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        values = {"src_recording_id": source, "dst_recording_id": destination}
        response = client.request(MigrateSegmentsRequest, **values)
        assert response == Ok(2 if is_before else 1)
        assert is_settled(env, client, response, recording_id=source)
        assert stored.range(destination) == (0, 3 * SEGMENT)
        assert len(set(stored.range(source))) == 1
        bases = (0, SEGMENT, 2 * SEGMENT)
        left = (*bases, 3 * SEGMENT) if is_before else bases
        assert stored.files(destination) == names(*left, recording_id=destination)
        reader = Reader(client)
        client.request_replay(destination)
        assert len(reader.until_end()) == 3 * SEGMENT // 1024


@pytest.mark.parametrize("fault", ["gap", "mtu", "missing", "occupied", "unaligned"])
def test_segments_that_do_not_fit_are_not_migrated(stored, tmp_path, monkeypatch, fault):
    source = stored.add(0, SEGMENT)
    begin = {"gap": 2 * SEGMENT}.get(fault, SEGMENT)
    stored.add(begin, begin + SEGMENT)
    with CatalogWriter(stored.directory) as catalog:
        found = catalog.descriptor(1)
        if fault == "mtu":
            catalog.replace(replace(found, mtu_length=2048))
        elif fault == "unaligned":
            catalog.set_stop_position(0, SEGMENT - 1024)
            catalog.set_start_position(1, SEGMENT - 1024)
    if fault == "missing":
        (stored.directory / "0-0.rec").unlink()
    elif fault == "occupied":
        shutil.copy(stored.directory / "0-0.rec", stored.directory / "1-0.rec")
    before = stored.files(0), stored.files(1)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        values = {"src_recording_id": source, "dst_recording_id": 1}
        assert client.request(MigrateSegmentsRequest, **values) == Err(0)
        assert (stored.files(0), stored.files(1)) == before
