"""CPU affinity of agent threads."""

import errno
import os

import pytest

from windtunnel.driver.media_driver.agent import cpu_affinity
from windtunnel.driver.media_driver.agent.cpu_affinity import pin_thread
from windtunnel.driver.media_driver.context import Context

CONTEXT = Context(conductor_cpu_affinity=3, sender_cpu_affinity=5, receiver_cpu_affinity=-1)


@pytest.fixture
def bound(monkeypatch):
    calls = []
    monkeypatch.setattr(cpu_affinity.os, "sched_setaffinity", lambda *call: calls.append(call))
    return calls


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        ("conductor", [(0, {3})]),
        ("shared", [(0, {3})]),
        ("sender", [(0, {5})]),
        ("shared-network", [(0, {5})]),
        ("receiver", []),
    ],
)
def test_each_thread_is_bound_to_its_configured_processor(bound, thread, expected):
    noted = []
    pin_thread(CONTEXT, thread, lambda *error: noted.append(error))
    assert (bound, noted) == (expected, [])


def test_an_absent_processor_is_logged(monkeypatch):
    def refuse(*_):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(cpu_affinity.os, "sched_setaffinity", refuse)
    noted = []
    pin_thread(CONTEXT, "sender", lambda code, text: noted.append((code, text)))
    ((code, text),) = noted
    assert code == 11
    assert "sender to processor 5" in text
