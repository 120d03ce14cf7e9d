"""Publishers of one stream begin together, when all are connected or the budget is exceeded."""

import signal

import pytest

from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.publisher_barrier import (
    Barrier,
    has_publication,
    release,
)


class Process:
    """A process that records the signals sent to it."""

    def __init__(self, code=None):
        self.code, self.signals = code, []

    def poll(self):
        return self.code

    def send_signal(self, number):
        self.signals.append(number)

    def tail(self, lines=5):
        return "gone"


def publisher(folder, name, text, code=None):
    log = folder / f"{name}.log"
    log.write_text(text)
    return WatchedProcess(name=name, process=Process(code), role="publisher", log=log)


def clock(*times):
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_all_begin_when_all_are_connected(tmp_path):
    publishers = [publisher(tmp_path, name, "progress 0/9\nready\n") for name in "ab"]
    release([Barrier("one", publishers)], required=publishers, wall_s=10, clock=clock(0.0))
    assert [each.process.signals for each in publishers] == [[signal.SIGUSR1]] * 2


def test_no_one_begins_before_the_last_is_connected(tmp_path):
    publishers = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "progress 0/9\n")]
    seen = []

    def look():
        seen.append([list(each.process.signals) for each in publishers])
        if len(seen) == 3:
            publishers[1].log.write_text("progress 0/9\nready\n")
        return 0.0

    release([Barrier("one", publishers)], required=publishers, wall_s=10, clock=look)
    assert len(seen) == 3
    assert seen == [[[], []]] * 3
    assert [each.process.signals for each in publishers] == [[signal.SIGUSR1]] * 2


def test_the_budget_ends_the_wait(tmp_path):
    publishers = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "progress 0/9\n")]
    release(
        [Barrier("one", publishers)], required=publishers, wall_s=10, clock=clock(0.0, 9.9, 10.0)
    )
    assert [each.process.signals for each in publishers] == [[signal.SIGUSR1]] * 2


def reader(folder, name, text):
    return publisher(folder, name, text)


def test_a_publisher_waits_for_as_many_subscribers_as_it_starts_with(tmp_path):
    publishers = [publisher(tmp_path, "a", "progress 0/9\nready\n")]
    readers = [reader(tmp_path, name, "ready\n") for name in "bcd"]
    seen = []

    def look():
        seen.append(list(publishers[0].process.signals))
        if len(seen) > 2:
            readers[len(seen) - 3].log.write_text("ready\njoined\nprogress 0/9\n")
        return 0.0

    barrier = Barrier("one", publishers, readers, 2)
    release([barrier], required=publishers, wall_s=10, clock=look)
    assert seen == [[]] * 4
    assert publishers[0].process.signals == [signal.SIGUSR1]


def test_the_streams_do_not_wait_for_each_other(tmp_path):
    publishers = [publisher(tmp_path, name, "progress 0/9\nready\n") for name in "ab"]
    readers = [reader(tmp_path, "c", "ready\n")]
    seen = []

    def look():
        seen.append([list(each.process.signals) for each in publishers])
        if len(seen) == 3:
            readers[0].log.write_text("ready\njoined\n")
        return 0.0

    barriers = [Barrier("one", publishers[:1]), Barrier("two", publishers[1:], readers, 1)]
    release(barriers, required=publishers, wall_s=10, clock=look)
    assert seen == [[[], []], [[], []], [[signal.SIGUSR1], []]]
    assert [each.process.signals for each in publishers] == [[signal.SIGUSR1]] * 2


def test_a_stream_that_starts_with_all_does_not_start_with_fewer(tmp_path):
    publishers = [publisher(tmp_path, "a", "progress 0/9\nready\n")]
    readers = [reader(tmp_path, "b", "ready\njoined\n"), reader(tmp_path, "c", "ready\n")]
    barrier = Barrier("ticks", publishers, readers, 2)
    text = "stream ticks starts with 2 subscribers, but only 1 have joined within the budget of 10"
    with pytest.raises(RunFailed, match=text):
        release([barrier], required=publishers, wall_s=10, clock=clock(0.0, 9.9, 10.0))
    assert publishers[0].process.signals == []


def test_the_wait_ends_if_a_process_ends(tmp_path):
    publishers = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "", code=1)]
    with pytest.raises(RunFailed, match="b ended with exit code 1"):
        release([Barrier("one", publishers)], required=publishers, wall_s=10, clock=clock(0.0))
    assert publishers[0].process.signals == []


def test_recognises_a_publisher_that_has_a_publication():
    assert [has_publication(each) for each in ("progress 0/9", "ready", "readying", "")] == [
        True, True, False, False,
    ]  # fmt: skip
