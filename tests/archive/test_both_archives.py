"""Java's and this project's archive open each other's files and replicate from each other.

Skipped with a reason without a Java archive.
"""

import shutil

import pytest

from tests.archive.archives import KINDS, Archive, until, why_no_java
from tests.archive.conversation import ControlSession, summary
from tests.archive.streams import FRAME, Extended, Recorded, positioned, replayed
from tests.archive.test_replication import WHOLE, Copy
from tests.archive.test_storage import listed
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.protocol.requests import ListRecordingRequest, PurgeRecordingRequest

pytestmark = pytest.mark.skipif(bool(why_no_java()), reason=why_no_java())

PAIRS = [("java", "ours"), ("ours", "java")]


def test_both_kinds_of_archive_are_tested():
    assert set(KINDS) == {"ours", "java"}


@pytest.fixture(params=PAIRS, ids=lambda pair: "-then-".join(pair))
def pair(request):
    return request.param


def restarted_as(archive, kind):
    """Start an archive of the other kind in the same directory."""
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    following = Archive(kind, archive.folder, archive.settings)
    following.port = archive.port
    return following


def test_an_archive_opens_the_directory_of_the_other(tmp_path, pair):
    """Each archive lists, replays and extends the recordings of the other."""
    first_kind, second_kind = pair
    archive = Archive(first_kind, tmp_path / "moving")
    try:
        session = ControlSession(archive.start())
        made = [Recorded(session, positioned(start)).send(150) for start in (0, 4_096, 0)]
        for each in made:
            each.stop()
        session.ok(PurgeRecordingRequest, recording_id=2)
        before = [fields_of(each) for each in listed(session)]
        archive = restarted_as(archive, second_kind)
        session = ControlSession(archive.start())
        assert [fields_of(each) for each in listed(session)] == before
        for each in made[:2]:
            each.session = session
            assert replayed(session, each.recording_id) == each.sent
        extended = Extended(made[0])
        session.signal(RecordingSignal.EXTEND, extended.request)
        extended.send(100).stop()
        following = Recorded(session).send(3)
        assert following.recording_id == 3
        following.stop()
        archive = restarted_as(archive, first_kind)
        session = ControlSession(archive.start())
        assert [each.recording_id for each in listed(session)] == [0, 1, 3]
        assert replayed(session, 0) == extended.sent
        assert replayed(session, 1) == made[1].sent
        assert replayed(session, 3) == following.sent
    finally:
        archive.kill()


def fields_of(descriptor):
    """Return a descriptor without the fields of the session."""
    return {
        name: getattr(descriptor, name)
        for name in descriptor.__dataclass_fields__
        if name not in ("control_session_id", "correlation_id")
    }


def test_an_archive_replicates_from_the_other(archives, pair):
    source, target = archives.shared(pair[0], "source"), archives.shared(pair[1])
    source_session, session = ControlSession(source), ControlSession(target)
    original = Recorded(source_session).send(150)
    original.stop()
    copy = Copy(session, source, original.recording_id)
    assert copy.has_sent(*WHOLE)
    for file in sorted(source.directory.glob(f"{original.recording_id}-*.rec")):
        name = f"{copy.recording_id}-{file.stem.partition('-')[2]}.rec"
        assert (target.directory / name).read_bytes() == file.read_bytes()
    theirs, ours = (
        each.request(ListRecordingRequest, recording_id=recording_id)
        for each, recording_id in (
            (source_session, original.recording_id),
            (session, copy.recording_id),
        )
    )
    assert (ours.stop_position, ours.session_id) == (theirs.stop_position, theirs.session_id)
    assert replayed(session, copy.recording_id) == original.sent
    source_session.close()
    session.close()


def test_an_archive_follows_a_live_recording_of_the_other(archives, pair):
    source, target = archives.shared(pair[0], "source"), archives.shared(pair[1])
    source_session, session = ControlSession(source), ControlSession(target)
    live = Recorded(source_session).send(50)
    copy = Copy(session, source, live.recording_id)
    session.signal(RecordingSignal.EXTEND, copy.replication_id)
    live.send(100)
    live.stop()
    until(lambda: "STOP" in summary(copy.messages), "the end of the copy")
    found = session.request(ListRecordingRequest, recording_id=copy.recording_id)
    assert found.stop_position == live.stop_position > 150 * FRAME
    assert replayed(session, copy.recording_id) == live.sent
    source_session.close()
    session.close()
