"""An archive with a lost or damaged catalog does not start, and its recordings can be recovered.

Aeron's archive starts with an empty or partial catalog and overwrites the recordings.
"""

import shutil

import pytest

from tests.archive.archives import SEGMENT
from tests.archive.conversation import ControlSession
from tests.archive.streams import FRAME, Recorded, replayed
from windtunnel.driver.archive.tool.program import main as our_tool

ENTRIES_AT = 32


@pytest.fixture
def stopped(own_archive, kind):
    """Return a stopped archive with three recordings, and the messages that were sent."""
    if kind == "java":
        pytest.skip("Java's archive overwrites them")
    archive = own_archive().start()
    session = ControlSession(archive)
    all_sent = []
    for count in (150, 5, 20):
        recorded = Recorded(session).send(count)
        recorded.stop()
        all_sent.append(recorded.sent)
    session.close()
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    return archive, all_sent


def segments(archive):
    return {path.name: path.read_bytes() for path in archive.directory.glob("*.rec")}


def check_refused(archive):
    """Check that the archive does not start, and that its error contains the command to run."""
    before = segments(archive)
    catalog = archive.directory / "archive.catalog"
    content = catalog.read_bytes() if catalog.exists() else None
    archive.launch()
    assert archive.exit_code() == 2
    assert f"`windtunnel archive recover --dir {archive.directory}`" in archive.log
    assert "Traceback" not in archive.log
    assert segments(archive) == before
    assert (catalog.read_bytes() if catalog.exists() else None) == content
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)


def check_recovered(archive, all_sent):
    """Check that after `recover` the archive starts, replays every message, and records again."""
    before = segments(archive)
    assert our_tool(["recover", "--dir", str(archive.directory)]) == 0
    assert segments(archive) == before
    session = ControlSession(archive.start())
    for recording_id, sent in enumerate(all_sent):
        assert replayed(session, recording_id) == sent
    later = Recorded(session).send(10)
    assert later.recording_id == len(all_sent)
    assert before.items() <= segments(archive).items()
    session.close()


def test_a_missing_catalog_with_recordings(stopped):
    archive, all_sent = stopped
    assert len(all_sent[0]) * FRAME > SEGMENT
    (archive.directory / "archive.catalog").unlink()
    check_refused(archive)
    check_recovered(archive, all_sent)


@pytest.mark.full
def test_a_zeroed_entry_length(stopped):
    archive, all_sent = stopped
    with (archive.directory / "archive.catalog").open("r+b") as file:
        file.seek(ENTRIES_AT)
        length = int.from_bytes(file.read(4), "little")
        file.seek(ENTRIES_AT + 32 + length)
        assert int.from_bytes(file.read(4), "little") > 0
        file.seek(ENTRIES_AT + 32 + length)
        file.write(bytes(4))
    check_refused(archive)
    check_recovered(archive, all_sent)
