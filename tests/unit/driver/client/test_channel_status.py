"""Addresses and status of channels from the driver's counters."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.client import channel_status
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.counters_reader import CountersReader

CHANNEL = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k"
RECEIVE_STATUS_TYPE, ADDRESS_TYPE = 7, 14


@pytest.fixture
def manager():
    metadata = np.zeros(16 * counters.METADATA_LENGTH, np.uint8)
    values = np.zeros(16 * counters.COUNTER_LENGTH, np.uint8)
    return CountersManager(metadata, values, ManualClock())


@pytest.fixture
def reader(manager):
    return CountersReader(manager.metadata, manager.values)


def channel_of(status_id, text=CHANNEL, *, is_closed=False):
    return SimpleNamespace(channel=text, channel_status_id=status_id, is_closed=is_closed)


def bind(manager, status_id, address, *, value=1, length=None):
    key = struct.pack("<2i", status_id, len(address) if length is None else length)
    return manager.allocate(ADDRESS_TYPE, key + address.encode(), "rcv-local-sockaddr", value=value)


def test_the_status_is_the_value_of_the_counter(manager, reader):
    status_id = manager.allocate(RECEIVE_STATUS_TYPE, b"", "rcv-channel", value=0)
    for value in (channel_status.INITIALISING, channel_status.ACTIVE, channel_status.ERRORED):
        counters.set_release(manager.values, status_id, value)
        assert channel_status.status(reader, channel_of(status_id)) == value
    closed = channel_of(status_id, is_closed=True)
    assert channel_status.status(reader, closed) == channel_status.NO_ID_ALLOCATED


def test_a_channel_without_sockets_is_active(reader):
    assert channel_status.status(reader, channel_of(-1, "aeron:ipc")) == channel_status.ACTIVE
    assert channel_status.local_addresses(reader, channel_of(-1, "aeron:ipc")) == []


def test_only_its_own_bound_addresses_count(manager, reader):
    status_id = manager.allocate(RECEIVE_STATUS_TYPE, b"", "rcv-channel", value=1)
    bind(manager, status_id, "127.0.0.1:1")
    bind(manager, status_id + 50, "127.0.0.1:2")
    bind(manager, status_id, "127.0.0.1:3", value=0)
    gone = bind(manager, status_id, "127.0.0.1:4")
    manager.free(gone)
    bind(manager, status_id, "[::1]:5")
    found = channel_status.local_addresses(reader, channel_of(status_id))
    assert found == ["127.0.0.1:1", "[::1]:5"]
    assert channel_status.local_addresses(reader, channel_of(status_id, is_closed=True)) == []
    counters.set_release(manager.values, status_id, channel_status.CLOSING)
    assert channel_status.local_addresses(reader, channel_of(status_id)) == []


@pytest.mark.parametrize("length", [-1, 0, 105, 1 << 30])
def test_a_length_beyond_the_key_is_ignored(manager, reader, length):
    status_id = manager.allocate(RECEIVE_STATUS_TYPE, b"", "rcv-channel", value=1)
    bind(manager, status_id, "127.0.0.1:1", length=length)
    assert channel_status.local_addresses(reader, channel_of(status_id)) == []


@pytest.mark.parametrize("status_id", [-2, 16, 1 << 30])
def test_a_counter_id_out_of_range_has_no_channel(reader, status_id):
    assert channel_status.local_addresses(reader, channel_of(status_id)) == []
    assert channel_status.status(reader, channel_of(status_id)) == channel_status.ACTIVE


def test_port_zero_is_replaced_once_the_port_is_known(manager, reader):
    status_id = manager.allocate(RECEIVE_STATUS_TYPE, b"", "rcv-channel", value=1)
    assert channel_status.resolved_channel(reader, channel_of(status_id)) is None
    bind(manager, status_id, "127.0.0.1:4711")
    resolved = channel_status.resolved_channel(reader, channel_of(status_id))
    assert resolved == "aeron:udp?endpoint=127.0.0.1:4711|term-length=64k"


@pytest.mark.parametrize(
    "text",
    [
        "aeron:udp?endpoint=127.0.0.1:20",
        "aeron:udp?control=127.0.0.1:0|control-mode=dynamic",
        "aeron:udp?endpoint=127.0.0.1:0|control-mode=manual",
        "aeron:ipc",
    ],
)
def test_a_channel_with_a_port_is_not_changed(reader, text):
    assert channel_status.resolved_channel(reader, channel_of(3, text)) == text
