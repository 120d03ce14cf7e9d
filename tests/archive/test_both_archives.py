"""Java's and this project's archive open each other's files and replicate from each other.

Skipped with a reason without a Java archive.
"""

import shutil

import pytest

from tests.archive.archives import KINDS, Archive, until, why_no_java
from tests.archive.conversation import Conversation, shape
from tests.archive.streams import FRAME, Extended, Recorded, positioned, replayed
from tests.archive.test_replication import WHOLE, Copy
from tests.archive.test_storage import listed
from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.protocol.requests import ListRecordingRequest, PurgeRecordingRequest

pytestmark = pytest.mark.skipif(bool(why_no_java()), reason=why_no_java())

PAIRS = [("java", "ours"), ("ours", "java")]


def test_every_case_meets_both():
    assert set(KINDS) == {"ours", "java"}


@pytest.fixture(params=PAIRS, ids=lambda pair: "-then-".join(pair))
def pair(request):
    return request.param


def moved(archive, kind):
    """Start an archive of the other kind in the same directory."""
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    following = Archive(kind, archive.folder, archive.settings)
    following.port = archive.port
    return following


def test_one_opens_the_others_directory(tmp_path, pair):
    """Each archive lists, replays and extends the recordings of the other."""
    first_kind, second_kind = pair
    archive = Archive(first_kind, tmp_path / "moving")
    try:
        talk = Conversation(archive.start())
        made = [Recorded(talk, positioned(start)).send(150) for start in (0, 4_096, 0)]
        for each in made:
            each.stop()
        talk.ok(PurgeRecordingRequest, recording_id=2)
        before = [fact(each) for each in listed(talk)]
        archive = moved(archive, second_kind)
        talk = Conversation(archive.start())
        assert [fact(each) for each in listed(talk)] == before
        for each in made[:2]:
            each.talk = talk
            assert replayed(talk, each.recording_id) == each.sent
        extended = Extended(made[0])
        talk.signal(RecordingSignal.EXTEND, extended.request)
        extended.send(100).stop()
        following = Recorded(talk).send(3)
        assert following.recording_id == 3
        following.stop()
        archive = moved(archive, first_kind)
        talk = Conversation(archive.start())
        assert [each.recording_id for each in listed(talk)] == [0, 1, 3]
        assert replayed(talk, 0) == extended.sent
        assert replayed(talk, 1) == made[1].sent
        assert replayed(talk, 3) == following.sent
    finally:
        archive.kill()


def fact(descriptor):
    """Return a descriptor without the fields of the session."""
    return {
        name: getattr(descriptor, name)
        for name in descriptor.__dataclass_fields__
        if name not in ("control_session_id", "correlation_id")
    }


def test_one_copies_from_the_other(archives, pair):
    source, target = archives.shared(pair[0], "source"), archives.shared(pair[1])
    source_talk, talk = Conversation(source), Conversation(target)
    original = Recorded(source_talk).send(150)
    original.stop()
    copy = Copy(talk, source, original.recording_id)
    assert copy.ends_as(*WHOLE)
    for file in sorted(source.directory.glob(f"{original.recording_id}-*.rec")):
        name = f"{copy.recording_id}-{file.stem.partition('-')[2]}.rec"
        assert (target.directory / name).read_bytes() == file.read_bytes()
    theirs, ours = (
        each.ask(ListRecordingRequest, recording_id=recording_id)
        for each, recording_id in ((source_talk, original.recording_id), (talk, copy.recording_id))
    )
    assert (ours.stop_position, ours.session_id) == (theirs.stop_position, theirs.session_id)
    assert replayed(talk, copy.recording_id) == original.sent
    source_talk.close()
    talk.close()


def test_one_follows_the_others_live_recording(archives, pair):
    source, target = archives.shared(pair[0], "source"), archives.shared(pair[1])
    source_talk, talk = Conversation(source), Conversation(target)
    live = Recorded(source_talk).send(50)
    copy = Copy(talk, source, live.recording_id)
    talk.signal(RecordingSignal.EXTEND, copy.replication_id)
    live.send(100)
    live.stop()
    until(lambda: "STOP" in shape(copy.story), "the end of the copy")
    found = talk.ask(ListRecordingRequest, recording_id=copy.recording_id)
    assert found.stop_position == live.stop_position > 150 * FRAME
    assert replayed(talk, copy.recording_id) == live.sent
    source_talk.close()
    talk.close()
