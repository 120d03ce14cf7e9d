"""A workload's output for its runner: whole lines, at a limited rate."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.workload import progress as progress_module
from windtunnel.harness.workload.progress import Progress, print_line


class Told:
    """A stream that records each write."""

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
    print_line("ready")
    assert told == ["ready\n"]


def test_progress_is_told_now_and_then_and_at_last(told):
    progress = Progress(1000)
    progress.add(300)
    progress.report()
    progress.add(100)
    progress.report()
    progress.add(600)
    progress.report(last=True)
    assert told[0] == "progress 300/1000\n"
    assert told[-1] == "progress 1000/1000\n"
    assert len(told) <= 3
