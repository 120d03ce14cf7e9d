"""A workload's output for its runner: whole lines, at a limited rate."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.workload import progress as progress_module
from windtunnel.harness.workload.progress import Progress, print_line


class RecordingStream:
    """A stream that records each write."""

    def __init__(self):
        self.writes = []

    def write(self, text):
        self.writes.append(text)

    def flush(self):
        pass


@pytest.fixture
def writes(monkeypatch):
    stream = RecordingStream()
    # Not `sys.stdout` itself, because pytest replaces it between a fixture and its test.
    monkeypatch.setattr(progress_module, "sys", SimpleNamespace(stdout=stream))
    return stream.writes


def test_a_line_is_written_at_once(writes):
    print_line("ready")
    assert writes == ["ready\n"]


def test_progress_is_written_at_a_limited_rate_and_at_the_end(writes):
    progress = Progress(1000)
    progress.add(300)
    progress.report()
    progress.add(100)
    progress.report()
    progress.add(600)
    progress.report(last=True)
    assert writes[0] == "progress 300/1000\n"
    assert writes[-1] == "progress 1000/1000\n"
    assert len(writes) <= 3
