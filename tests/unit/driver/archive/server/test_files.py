"""Truncation, purging, detaching, attaching, deletion and migration. Cases T1 to T10 and
G1 to G15.
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


class Made:
    """Recordings that exist when the archive starts, with a frame every 1024 bytes."""

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
def made(tmp_path):
    return Made(tmp_path)


def is_settled(own, talker, answer, *, recording_id=0):
    """Wait for the DELETE signal after a response."""
    own.until(lambda: ("DELETE", recording_id, -1) in talker.about(answer.correlation_id))
    return talker.about(answer.correlation_id)[-1] == ("DELETE", recording_id, -1)


def names(*bases, recording_id=0):
    return [f"{recording_id}-{base}.rec" for base in bases]


THREE = 3 * SEGMENT - 10_240
"""The stop position of a recording with three files."""


@pytest.mark.parametrize(
    ("position", "code"),
    [(TERM - 1024, 16), (THREE + 1024, 16), (-32, 16), (SEGMENT + 1000, 16), (SEGMENT + 1056, 0)],
)
def test_what_cannot_be_truncated_is_as_it_was(made, tmp_path, monkeypatch, position, code):
    made.add(TERM, TERM + THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        wanted = position if position < SEGMENT else position + TERM
        values = {"recording_id": 0, "position": wanted}
        assert talker.ask(TruncateRecordingRequest, **values) == Err(code)
        assert made.range() == (TERM, TERM + THREE)
        assert talker.ask(TruncateRecordingRequest, recording_id=1, position=0) == Err(5)


@pytest.mark.parametrize(
    ("position", "count", "left"),
    [
        (THREE, 0, (0, SEGMENT, 2 * SEGMENT)),
        (SEGMENT + 2048, 1, (0, SEGMENT)),
        (SEGMENT, 2, (0,)),
        (0, 3, ()),
    ],
)
def test_a_recording_is_truncated(made, tmp_path, monkeypatch, position, count, left):
    made.add(0, THREE)
    whole = b"".join((made.directory / name).read_bytes() for name in made.files())
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        answer = talker.ask(TruncateRecordingRequest, recording_id=0, position=position)
        assert answer == Ok(count)
        assert is_settled(own, talker, answer)
        assert made.range() == (0, position)
        assert made.files() == names(*left)
        content = b"".join((made.directory / name).read_bytes() for name in made.files())
        assert len(content) == len(left) * SEGMENT
        assert content[:position] == whole[:position]
        assert not any(content[position:])


def test_truncating_ends_replays_first(made, tmp_path, monkeypatch):
    made.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        reader = Reader(talker)
        talker.ask_replay(0)
        reader.until(lambda: reader.seen)
        answer = talker.ask(TruncateRecordingRequest, recording_id=0, position=1024)
        assert answer == Ok(2)
        assert is_settled(own, talker, answer)
        own.until(lambda: not reader.subscription.images)


def test_a_replay_of_what_is_left_does_not_stop_the_deletion(made, tmp_path, monkeypatch):
    made.add(0, 40 * SEGMENT)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        reader = Reader(talker)
        answer = talker.ask(TruncateRecordingRequest, recording_id=0, position=SEGMENT)
        assert answer == Ok(40)
        replay = talker.ask_replay(0)
        assert replay == Ok(replay.relevant_id)
        assert len(made.files()) > 1
        # It never reads, so the replay goes on for as long as it is there.
        assert is_settled(own, talker, answer)
        assert made.files() == names(0)
        assert reader.subscription.images
        assert talker.ask(TruncateRecordingRequest, recording_id=0, position=SEGMENT) == Ok(1)


def test_what_goes_on_is_neither_truncated_nor_purged(own, talker):
    talker.live_recording()
    assert talker.ask(TruncateRecordingRequest, recording_id=0, position=0) == Err(2)
    assert talker.ask(PurgeRecordingRequest, recording_id=0) == Err(2)


def test_a_recording_is_purged_when_nobody_reads_it(made, tmp_path, monkeypatch):
    made.add(0, THREE)
    (made.directory / "0-999424.rec.del").write_bytes(b"left by an older archive")
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        reader = Reader(talker)
        talker.ask_replay(0)
        reader.until(lambda: reader.seen)
        assert talker.ask(PurgeRecordingRequest, recording_id=0) == Err(2)
        reader.until_end()
        own.run_for(100_000_000)
        answer = talker.ask(PurgeRecordingRequest, recording_id=0)
        assert answer == Ok(4)
        assert is_settled(own, talker, answer)
        assert made.files() == []
        assert made.entry().state == 2
        assert talker.ask(PurgeRecordingRequest, recording_id=0) == Err(5)


@pytest.mark.parametrize(
    ("position", "bound"),
    [(TERM, "base"), (0, "below"), (3 * SEGMENT, "above"), (-SEGMENT, "below")],
)
def test_a_start_that_is_no_files_is_refused(made, tmp_path, monkeypatch, position, bound):
    made.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        for kind in (DetachSegmentsRequest, PurgeSegmentsRequest):
            answer = talker.ask(kind, recording_id=0, new_start_position=position)
            assert answer == Err(0)
            assert bound in answer.error_message


def test_files_are_detached_and_attached(made, tmp_path, monkeypatch):
    made.add(4096, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        assert talker.ask(DetachSegmentsRequest, **wanted) == Ok(0)
        assert made.range() == (2 * SEGMENT, THREE)
        assert made.files() == names(0, SEGMENT, 2 * SEGMENT)
        assert talker.ask_replay(0, position=4096) == Err(16)
        assert talker.ask(AttachSegmentsRequest, recording_id=0) == Ok(2)
        assert made.range() == (4096, THREE)
        assert talker.ask(AttachSegmentsRequest, recording_id=0) == Ok(0)


def test_nothing_is_attached_before_the_beginning_of_a_stream(made, tmp_path, monkeypatch):
    made.add(SEGMENT + 4096, THREE)
    path = made.directory / f"0-{SEGMENT}.rec"
    first = path.read_bytes()
    # A file that would fit, but for the gap behind it.
    own_recording.write(made.directory, 0, own_recording.stream([992] * 100))
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        assert talker.ask(DetachSegmentsRequest, **wanted) == Ok(0)
        assert talker.ask(AttachSegmentsRequest, recording_id=0) == Ok(1)
        assert made.range() == (SEGMENT + 4096, THREE)
        assert path.read_bytes() == first


@pytest.mark.parametrize("damage", ["short", "zero", "stream", "term"])
def test_a_file_that_does_not_fit_is_not_attached(made, tmp_path, monkeypatch, damage):
    made.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        talker.ask(DetachSegmentsRequest, recording_id=0, new_start_position=2 * SEGMENT)
        path = made.directory / f"0-{SEGMENT}.rec"
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
        assert talker.ask(AttachSegmentsRequest, recording_id=0) == Err(0)
        assert made.range() == (2 * SEGMENT, THREE)


def test_detached_files_are_deleted(made, tmp_path, monkeypatch):
    made.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        none = talker.ask(DeleteDetachedSegmentsRequest, recording_id=0)
        assert none == Ok(0)
        assert is_settled(own, talker, none)
        talker.ask(DetachSegmentsRequest, recording_id=0, new_start_position=SEGMENT)
        answer = talker.ask(DeleteDetachedSegmentsRequest, recording_id=0)
        assert answer == Ok(1)
        assert is_settled(own, talker, answer)
        assert made.files() == names(SEGMENT, 2 * SEGMENT)


def test_segments_are_purged(made, tmp_path, monkeypatch):
    made.add(0, THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        wanted = {"recording_id": 0, "new_start_position": 2 * SEGMENT}
        answer = talker.ask(PurgeSegmentsRequest, **wanted)
        assert answer == Ok(2)
        assert is_settled(own, talker, answer)
        assert made.range() == (2 * SEGMENT, THREE)
        assert made.files() == names(2 * SEGMENT)


def test_bases_follow_the_term_of_the_start(made, tmp_path, monkeypatch):
    made.add(TERM + 1024, TERM + THREE)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        assert made.files() == names(TERM, TERM + SEGMENT, TERM + 2 * SEGMENT)
        for position, expected in ((SEGMENT, Err(0)), (TERM + SEGMENT, Ok(0))):
            wanted = {"recording_id": 0, "new_start_position": position}
            assert talker.ask(DetachSegmentsRequest, **wanted) == expected


def test_a_live_recording_is_detached_behind_where_it_is(own, talker):
    talker.live_recording(150)
    for position, expected in ((2 * SEGMENT, Err(0)), (SEGMENT, Ok(0))):
        wanted = {"recording_id": 0, "new_start_position": position}
        assert talker.ask(DetachSegmentsRequest, **wanted) == expected


@pytest.mark.parametrize("is_before", [True, False])
def test_segments_are_migrated(made, tmp_path, monkeypatch, is_before):
    early, late = made.add(0, 2 * SEGMENT), made.add(2 * SEGMENT, 3 * SEGMENT)
    (made.directory / f"{early}-{2 * SEGMENT}.rec").unlink()
    source, destination = (early, late) if is_before else (late, early)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        values = {"src_recording_id": source, "dst_recording_id": destination}
        answer = talker.ask(MigrateSegmentsRequest, **values)
        assert answer == Ok(2 if is_before else 1)
        assert is_settled(own, talker, answer, recording_id=source)
        assert made.range(destination) == (0, 3 * SEGMENT)
        assert len(set(made.range(source))) == 1
        bases = (0, SEGMENT, 2 * SEGMENT)
        left = (*bases, 3 * SEGMENT) if is_before else bases
        assert made.files(destination) == names(*left, recording_id=destination)
        reader = Reader(talker)
        talker.ask_replay(destination)
        assert len(reader.until_end()) == 3 * SEGMENT // 1024


@pytest.mark.parametrize("fault", ["gap", "mtu", "missing", "occupied", "unaligned"])
def test_what_does_not_fit_is_not_migrated(made, tmp_path, monkeypatch, fault):
    source = made.add(0, SEGMENT)
    begin = {"gap": 2 * SEGMENT}.get(fault, SEGMENT)
    made.add(begin, begin + SEGMENT)
    with CatalogWriter(made.directory) as catalog:
        found = catalog.descriptor(1)
        if fault == "mtu":
            catalog.replace(replace(found, mtu_length=2048))
        elif fault == "unaligned":
            catalog.set_stop_position(0, SEGMENT - 1024)
            catalog.set_start_position(1, SEGMENT - 1024)
    if fault == "missing":
        (made.directory / "0-0.rec").unlink()
    elif fault == "occupied":
        shutil.copy(made.directory / "0-0.rec", made.directory / "1-0.rec")
    before = made.files(0), made.files(1)
    with own_archive(tmp_path, monkeypatch) as own:
        talker = own.talk()
        values = {"src_recording_id": source, "dst_recording_id": 1}
        assert talker.ask(MigrateSegmentsRequest, **values) == Err(0)
        assert (made.files(0), made.files(1)) == before
