"""The thread of an archive's agent has the agent's name, and ends on a stop or a failure."""

import threading
from pathlib import Path

import pytest

from windtunnel.driver.archive.server.agent_thread import AgentThread
from windtunnel.driver.base import idle
from windtunnel.driver.base.clock import SystemClock

WAIT_S = 30


def started(do_work, name="archive-conductor"):
    return AgentThread(name, do_work, idle.make_idle(idle.SLEEP), SystemClock())


@pytest.mark.parametrize(
    ("name", "shown"), [("archive-recorder", "archive-recorde"), ("archive", "archive")]
)
def test_linux_shows_the_name_of_the_agent(name, shown):
    names, is_done = [], threading.Event()

    def do_work(now_ns):
        names.append(Path("/proc/thread-self/comm").read_text(encoding="ascii").strip())
        is_done.set()
        return 0

    thread = started(do_work, name)
    assert is_done.wait(WAIT_S)
    thread.stop()
    assert set(names) == {shown}
    assert thread.failure is None


def test_a_failure_ends_the_agent_and_is_reported():
    is_done = threading.Event()

    def do_work(now_ns):
        is_done.set()
        raise ValueError("no work")

    thread = started(do_work)
    assert is_done.wait(WAIT_S)
    thread.stop()
    assert str(thread.failure) == "no work"
