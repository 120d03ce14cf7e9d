"""Ports for measured streams, which no other socket gets meanwhile."""

import os
import socket

import pytest

from windtunnel.harness.bench import ports
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.orchestrate.lab import LabError

LOW, HIGH = 30_000, 50_000


@pytest.fixture(autouse=True)
def ephemeral(tmp_path, monkeypatch):
    """Set the range of ephemeral ports."""
    path = tmp_path / "ip_local_port_range"

    def set_range(low, high):
        path.write_text(f"{low}\t{high}\n")
        ports._blocks.cache_clear()

    monkeypatch.setattr(ports, "EPHEMERAL_PORTS", path)
    set_range(LOW, HIGH)
    yield set_range
    ports._blocks.cache_clear()


@pytest.mark.parametrize("count", [1, 32])
def test_no_port_is_ephemeral_whatever_the_process_id(monkeypatch, count):
    for pid in range(1_000, 1_100):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        ports._blocks.cache_clear()
        found = free_ports(count)
        assert len(found) == count
        assert found[-1] < LOW or found[0] > HIGH
        assert found[0] >= ports.FIRST_PORT
        assert found[-1] < ports.END_PORT


def test_successive_calls_return_different_ports():
    found = [free_ports(8) for _ in range(10)]
    assert len({port for each in found for port in each}) == 80


def test_processes_begin_at_different_ports(monkeypatch):
    found = set()
    for pid in range(1_000, 1_010):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        ports._blocks.cache_clear()
        found.add(free_ports(1)[0])
    assert len(found) == 10


def test_ports_in_use_are_skipped():
    used = free_ports(4)
    ports._blocks.cache_clear()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", used[2]))
        assert not set(free_ports(4)) & set(used)


def test_if_all_ports_are_ephemeral_they_are_used(ephemeral):
    ephemeral(1_024, 65_535)
    assert len(free_ports(4)) == 4


def test_without_free_ports_the_error_says_what_was_expected(monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(LabError, match=r"expected 4 consecutive free UDP ports .* stop the"):
        free_ports(4)
