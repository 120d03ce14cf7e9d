"""The memory of simulated hosts: each host gets the initial content."""

import mmap
from dataclasses import replace

import numpy as np
import pytest

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media.channel_sockets import LinkSockets
from windtunnel.driver.media_driver.context import INVOKER, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.simulator.world import host_memory
from windtunnel.harness.simulator.world.host_memory import (
    LARGE_BYTES,
    PAGED_BYTES,
    HostMemory,
    InitialContent,
    _without_parts,
)
from windtunnel.harness.simulator.world.single_interface import OneInterface
from windtunnel.harness.simulator.world.virtual_time import START_NS, VirtualClock

FILLER = 0xA5


@pytest.mark.parametrize(
    ("size", "first"),
    [
        (0, 0),
        (1, 7),
        (PAGED_BYTES, 9),
        (PAGED_BYTES - 1, 0),
        (PAGED_BYTES + 5, 0),
        (LARGE_BYTES, 0),
    ],
)
@pytest.mark.parametrize("at", [0, 1, mmap.PAGESIZE - 1])
def test_content_is_restored_and_adjacent_bytes_are_unchanged(size, first, at):
    around = np.full(at + size + 2 * mmap.PAGESIZE, FILLER, dtype=np.uint8)
    part = around[at : at + size]
    part[:] = 0
    part[:1] = first
    content = InitialContent(part)
    part[:] = FILLER
    content.restore()
    assert part[:1].tolist() == [first][:size]
    assert not part[1:].any()
    assert (around[:at] == FILLER).all()
    assert (around[at + size :] == FILLER).all()


def test_a_failed_system_call_is_an_error(monkeypatch):
    content = InitialContent(np.zeros(LARGE_BYTES, dtype=np.uint8))
    monkeypatch.setattr(host_memory.mmap, "MADV_DONTNEED", -1)
    with pytest.raises(OSError, match="madvise of"):
        content.restore()


def test_parts_of_arrays_are_left_out():
    whole, other = np.zeros(8, dtype=np.int64), np.zeros(3, dtype=np.uint8)
    kept = _without_parts([whole[2:4], whole.view(np.uint8), other, whole, np.zeros(0)])
    assert sorted(each.nbytes for each in kept) == [3, 64]


class Hosts:
    """Drivers one after another in the same memory."""

    def __init__(self, folder):
        self.memory = HostMemory(1 << 16)
        self.folder = folder
        self.context = Context(
            dir=folder / "driver",
            dir_delete_on_start=True,
            threading_mode=INVOKER,
            perform_storage_checks=False,
            publications_max=16,
        )

    def create_agents(self, *arguments):
        made = self.memory.create_agents(*arguments)
        self.copies = [each.bytes.copy() for each in self.memory._contents]
        return made

    def start(self, context=None, create_agents=None):
        links = self.memory.links
        return MediaDriver(
            context or self.context,
            clock=VirtualClock(np.full(1, START_NS), np.zeros(1, dtype=np.int64)),
            sockets=LinkSockets(links, SocketAddress("10.0.0.1", 0)),
            resolver=OneInterface("10.0.0.1"),
            links=links,
            seed=0,
            create_agents=create_agents or self.memory.create_agents,
        )


def test_a_later_driver_finds_the_same_arrays_with_their_first_content(tmp_path):
    hosts = Hosts(tmp_path)
    agents = hosts.start(create_agents=hosts.create_agents).agents
    copies = hosts.copies
    for each in hosts.memory._contents:
        each.bytes[:] = FILLER
    second = hosts.start(create_agents=hosts.create_agents)
    assert second.agents.sender.publications is agents.sender.publications
    assert second.agents.conductor.images is second.agents.receiver.images
    assert sum(each.size for each in copies) > 1 << 24
    for before, now in zip(copies, hosts.copies, strict=True):
        assert np.array_equal(before, now)
    # The files are those of the second driver.
    assert second.agents.conductor.counters is second._resources.cnc.counters_values
    assert second.agents.sender.counters is second.agents.receiver.counters
    assert second.agents.conductor.counters is not agents.conductor.counters
    assert second.agents.conductor.ring is second._resources.cnc.to_driver
    assert second.agents.conductor.loss_report is second._loss_report.report


def test_a_driver_in_another_directory_gets_the_same_arrays(tmp_path):
    hosts = Hosts(tmp_path)
    agents = hosts.start().agents
    other = replace(hosts.context, dir=tmp_path / "other")
    assert hosts.start(other).agents.sender.publications is agents.sender.publications


def test_a_driver_with_other_settings_gets_other_arrays(tmp_path):
    hosts = Hosts(tmp_path)
    agents = hosts.start().agents
    other = Context(dir=tmp_path / "other", threading_mode=INVOKER, perform_storage_checks=False)
    assert hosts.start(other).agents.sender.publications is not agents.sender.publications


def test_large_arrays_are_zero_at_first(tmp_path):
    hosts = Hosts(tmp_path)
    hosts.start(Context(dir=tmp_path / "driver", threading_mode=INVOKER))
    large = [each for each in hosts.memory._contents if each.bytes.size >= LARGE_BYTES]
    assert len(large) > 10
    assert not any(each.bytes.any() for each in large)
