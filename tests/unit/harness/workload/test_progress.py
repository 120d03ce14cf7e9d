"""What a workload tells its runner: whole lines, and not too many of them."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.workload import progress as progress_module
from windtunnel.harness.workload.progress import Progress, say


class Told:
    """A stream that notes each write."""

    def __init__(self):
        self.writes = []

    def write(self, text):
        self.writes.append(text)

    def flush(self):
        pass


@pytest.fixture
def told(monkeypatch):
    stream = Told()
    # Not `sys.stdout` itself: pytest puts its own there between a fixture and its test.
    monkeypatch.setattr(progress_module, "sys", SimpleNamespace(stdout=stream))
    return stream.writes


def test_a_line_is_told_in_one_piece(told):
    say("ready")
    assert told == ["ready\n"]


def test_progress_is_told_now_and_then_and_at_last(told):
    progress = Progress(1000)
    progress.add(300)
    progress.tell()
    progress.add(100)
    progress.tell()
    progress.add(600)
    progress.tell(last=True)
    assert told[0] == "progress 300/1000\n"
    assert told[-1] == "progress 1000/1000\n"
    assert len(told) <= 3
