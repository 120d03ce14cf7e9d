"""Publishers of one stream begin together, or when the budget is over, and never alone."""

import signal

import pytest

from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.orchestrate.run.publisher_barrier import has_publication, let_begin


class Process:
    """One that remembers what it was told."""

    def __init__(self, code=None):
        self.code, self.told = code, []

    def poll(self):
        return self.code

    def tell(self, number):
        self.told.append(number)

    def tail(self, lines=5):
        return "gone"


def publisher(folder, name, text, code=None):
    log = folder / f"{name}.log"
    log.write_text(text)
    return Watched(name=name, process=Process(code), role="publisher", log=log)


def clock(*times):
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_all_begin_when_all_are_connected(tmp_path):
    twins = [publisher(tmp_path, name, "progress 0/9\nready\n") for name in "ab"]
    let_begin(twins, wanted=twins, wall_s=10, clock=clock(0.0))
    assert [each.process.told for each in twins] == [[signal.SIGUSR1]] * 2


def test_nobody_begins_before_the_last_is_connected(tmp_path):
    twins = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "progress 0/9\n")]
    seen = []

    def look():
        seen.append([list(each.process.told) for each in twins])
        if len(seen) == 3:
            twins[1].log.write_text("progress 0/9\nready\n")
        return 0.0

    let_begin(twins, wanted=twins, wall_s=10, clock=look)
    assert len(seen) == 3
    assert seen == [[[], []]] * 3
    assert [each.process.told for each in twins] == [[signal.SIGUSR1]] * 2


def test_the_budget_ends_the_wait(tmp_path):
    twins = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "progress 0/9\n")]
    let_begin(twins, wanted=twins, wall_s=10, clock=clock(0.0, 9.9, 10.0))
    assert [each.process.told for each in twins] == [[signal.SIGUSR1]] * 2


def test_a_death_is_not_waited_out(tmp_path):
    twins = [publisher(tmp_path, "a", "ready\n"), publisher(tmp_path, "b", "", code=1)]
    with pytest.raises(RunFailed, match="b ended with exit code 1"):
        let_begin(twins, wanted=twins, wall_s=10, clock=clock(0.0))
    assert twins[0].process.told == []


def test_knows_a_publisher_that_has_come_so_far():
    assert [has_publication(each) for each in ("progress 0/9", "ready", "readying", "")] == [
        True, True, False, False,
    ]  # fmt: skip
