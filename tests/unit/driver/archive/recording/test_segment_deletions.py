"""Files are deleted in the background, after the replays that were active have ended."""

from windtunnel.driver.archive.protocol.codes import RecordingSignal
from windtunnel.driver.archive.recording.segment_deletions import Deletions


class Session:
    """A control session that collects the messages sent to its client."""

    def __init__(self):
        self.messages = []
        self.responses = self

    def ok(self, correlation_id, relevant_id):
        self.messages.append(("OK", correlation_id, relevant_id))

    def signal(self, correlation_id, signal, recording_id):
        self.messages.append((signal, correlation_id, recording_id))


def test_a_started_deletion_continues_while_a_new_replay_runs(tmp_path):
    files = [tmp_path / f"7-{base}.rec" for base in (0, 65_536, 131_072)]
    for each in files:
        each.touch()
    replays, session, deletions = ["old"], Session(), Deletions(None)
    deletions.begin_and_respond(session, 5, 7, files, lambda: not replays)
    assert deletions.do_work() == 0
    assert len(list(tmp_path.iterdir())) == 3
    replays.clear()
    assert deletions.do_work() == 1
    replays.append("new")
    assert [deletions.do_work() for _ in range(3)] == [1, 1, 0]
    assert not list(tmp_path.iterdir())
    assert session.messages == [("OK", 5, 3), (RecordingSignal.DELETE, 5, 7)]
    deletions.require_none(7)
