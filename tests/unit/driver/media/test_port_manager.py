"""Wildcard port ranges."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError, DriverError
from windtunnel.driver.media.port_manager import PortManager, parse_port_range

SETTING = "aeron.sender.wildcard.port.range"


def test_without_a_range_the_system_chooses_the_port():
    ports = parse_port_range(SETTING, "0 0")
    assert [ports.acquire(0), ports.acquire(0), ports.acquire(40123)] == [0, 0, 40123]


def test_each_port_is_returned_once_before_the_range_wraps():
    ports = PortManager(20000, 20002)
    assert [ports.acquire(0) for _ in range(3)] == [20000, 20001, 20002]
    with pytest.raises(DriverError, match="no available ports in range 20000 20002"):
        ports.acquire(0)
    ports.release(20001)
    assert ports.acquire(0) == 20001
    ports.release(20000)
    ports.release(20002)
    assert ports.acquire(0) == 20002


def test_a_port_named_by_a_channel_is_not_returned():
    ports = PortManager(20000, 20001)
    assert ports.acquire(20000) == ports.acquire(20000) == 20000
    assert ports.acquire(0) == 20001
    ports.release(20000)
    with pytest.raises(DriverError):
        ports.acquire(0)
    ports.release(20000)
    assert ports.acquire(0) == 20000


def test_a_port_that_was_never_taken_can_be_released():
    ports = PortManager(20000, 20000)
    ports.release(20000)
    assert ports.acquire(0) == 20000


@pytest.mark.parametrize("text", ["1 65535", "20000 20000", "0 0"])
def test_ranges(text):
    ports = parse_port_range(SETTING, text)
    assert f"{ports.low} {ports.high}" == text


@pytest.mark.parametrize(
    "text", ["", "1", "1 2 3", "a b", "-1 5", "0 5", "2 1", "1 65536", "1.0 2", "1 " + "9" * 9999]
)
def test_no_ranges(text):
    with pytest.raises(ConfigurationError, match=SETTING):
        parse_port_range(SETTING, text)
