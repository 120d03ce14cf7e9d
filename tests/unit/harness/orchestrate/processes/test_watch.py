"""Growing logs are read line by line, and progress is parsed from them."""

import signal

import pytest

from windtunnel.harness.orchestrate.processes.watch import (
    RunFailed,
    WatchedProcess,
    require_alive,
    wait_until_ready,
)
from windtunnel.harness.orchestrate.run import traffic


class Ended:
    """A process that has ended, or has not."""

    name = "ended"

    def __init__(self, code, words=""):
        self._code = code
        self._words = words

    def poll(self):
        return self._code

    def tail(self, lines=5):
        return self._words


def watched(log, role="driver", code=None, words=""):
    return WatchedProcess(name=f"a/{role}", process=Ended(code, words), role=role, log=log)


def test_a_line_is_read_once_it_is_complete(tmp_path):
    log = tmp_path / "log"
    follower = watched(log)
    assert follower.new_lines() == []
    log.write_text("first\nsec")
    assert follower.new_lines() == ["first"]
    assert follower.new_lines() == []
    log.write_text("first\nsecond\r\nthird\n")
    assert follower.new_lines() == ["second", "third"]


def test_bytes_that_are_not_text_are_accepted(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\xff\xfe\n")
    assert watched(log).new_lines() == ["\ufffd\ufffd"]


def test_the_subject_is_blamed_before_the_harness(tmp_path):
    relay = watched(tmp_path, "relay", code=1)
    driver = watched(tmp_path, "driver", code=-9, words="bye")
    with pytest.raises(RunFailed, match="a/driver was ended by signal 9; last log lines: bye") as e:
        require_alive([relay, driver])
    assert not e.value.harness_fault
    with pytest.raises(RunFailed, match="a/relay ended with exit code 1") as e:
        require_alive([relay])
    assert e.value.harness_fault
    require_alive([watched(tmp_path)])


@pytest.mark.parametrize(
    ("code", "why"), [(4, "expected 64 bytes"), (-7, "it was truncated while it was read")]
)
def test_a_driver_is_blamed_for_a_file_that_ends_its_sampler(tmp_path, code, why):
    sampler = watched(tmp_path, "sampler", code=code, words="expected 64 bytes")
    text = f"a/driver has written an invalid cnc.dat: {why}"
    with pytest.raises(RunFailed, match=f"^{text}$") as e:
        require_alive([sampler])
    assert not e.value.harness_fault
    # Only a sampler maps the files of a driver.
    with pytest.raises(RunFailed) as e:
        require_alive([watched(tmp_path, "capture", code=code)])
    assert e.value.harness_fault


def test_a_file_that_exceeds_the_size_limit_is_the_reason(tmp_path):
    capture = watched(tmp_path, "capture", code=-signal.SIGXFSZ, words="listening")
    assert capture.describe_exit() == (
        "a/capture was ended by signal 25, because a file exceeded the limit for its size (raise "
        "it with `ulimit -f unlimited`); last log lines: listening"
    )


def test_a_process_that_was_asked_to_end_is_not_a_failure(tmp_path):
    driver = watched(tmp_path, "driver", code=-9)
    driver.end_requested = True
    require_alive([driver])


@pytest.mark.parametrize("code", [0, 1])
def test_a_workload_may_end_on_its_own(tmp_path, code):
    short = watched(tmp_path, "publisher", code=code)
    if code == 0:
        require_alive([short])
    else:
        with pytest.raises(RunFailed, match="a/publisher ended with exit code 1"):
            require_alive([short])
    # One that is awaited may not.
    short.log = tmp_path / "log"
    short.log.write_text("")
    with pytest.raises(RunFailed, match=f"a/publisher ended with exit code {code}"):
        wait_until_ready([short], lambda line: line == "ready", required=[], timeout_s=9)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("progress 0/10", 0),
        ("progress 7/10", 7),
        ("progress 7", None),
        ("progress -7/10", None),
        ("progress x/10", None),
        ("progress 7/x", None),
        ("progressive 7/10", None),
        ("ready", None),
        ("", None),
    ],
)
def test_reads_progress_and_nothing_else(line, count):
    assert traffic.progress_bytes(line) == count


def test_progress_adds_up_by_role_and_begins_with_a_publisher(tmp_path):
    logs = [tmp_path / name for name in ("p1", "p2", "s1")]
    roles = ("publisher", "publisher", "subscriber")
    workloads = [
        WatchedProcess(name=log.name, process=Ended(None), role=role, log=log)
        for log, role in zip(logs, roles, strict=True)
    ]
    progress = traffic.Progress(lambda: workloads)
    logs[2].write_text("ready\nprogress 5/30\n")
    progress.read()
    assert (progress.total("subscriber"), progress.begun) == (5, False)
    logs[0].write_text("progress 10/30\nprogress 20/30\n")
    logs[1].write_text("progress 7/30\n")
    progress.read()
    assert (progress.total("publisher"), progress.begun) == (27, True)


def test_progress_of_a_replaced_process_does_not_count(tmp_path):
    first = WatchedProcess(name="p#1", process=Ended(None), role="publisher", log=tmp_path / "p")
    workloads = [first]
    progress = traffic.Progress(lambda: workloads)
    first.log.write_text("progress 10/30\n")
    progress.read()
    workloads = [
        WatchedProcess("p#2", Ended(None), "publisher", first.log, offset=first.log.stat().st_size)
    ]
    progress.read()
    assert progress.total("publisher") == 0
    first.log.write_text("progress 10/30\nprogress 4/30\n")
    progress.read()
    assert progress.total("publisher") == 4
