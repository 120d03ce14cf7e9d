"""Agent threads have the names of those of the C driver, of which Linux keeps 15 characters."""

import threading
from pathlib import Path

import pytest

from windtunnel.driver.media_driver.agent.thread_name import name_thread
from windtunnel.driver.media_driver.context import Context


@pytest.mark.parametrize(
    ("thread", "naming", "expected"),
    [
        ("conductor", "classic", "conductor"),
        ("sender", "classic", "sender"),
        ("receiver", "classic", "receiver"),
        ("shared-network", "classic", "[sender, receiv"),
        ("shared", "classic", "[conductor, sen"),
        ("conductor", "new", "aeron-md-cnd"),
        ("sender", "new", "aeron-md-snd"),
        ("receiver", "new", "aeron-md-rcv"),
        ("shared-network", "new", "aeron-md-net"),
        ("shared", "new", "aeron-md-shd"),
    ],
)
def test_a_thread_has_the_name_of_its_agent(thread, naming, expected):
    seen = []

    def agent():
        name_thread(Context(thread_naming=naming), thread)
        path = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        seen.append(path.read_text(encoding="utf-8").rstrip("\n"))

    own = threading.Thread(target=agent)
    own.start()
    own.join()
    assert seen == [expected]
