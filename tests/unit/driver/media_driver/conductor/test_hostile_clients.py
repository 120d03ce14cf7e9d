"""Clients that forge what they write to shared memory keep no resources and hide no errors."""

import struct

import numpy as np
import pytest

from tests.unit.driver.media_driver.invoked_driver import MS, SECOND, lab
from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import add_i64, put_i32
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.error_log import TEXTS_PER_KIND_MAX, read_errors
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import AddCounter
from windtunnel.driver.command.publication import AddPublication, PublicationReady
from windtunnel.driver.command.response import ErrorResponse
from windtunnel.driver.media_driver.context import Context

TO_PEER = "aeron:udp?endpoint=10.0.0.2:40456|term-length=64k"


@pytest.fixture
def driver(tmp_path):
    with lab(tmp_path / "aeron", client_liveness_timeout_ns=5 * SECOND) as opened:
        yield opened


@pytest.mark.parametrize("heartbeat_ms", [1 << 62, (1 << 63) - 1])
def test_a_heartbeat_from_the_future_keeps_counters_no_longer_than_the_timeout(
    driver, heartbeat_ms
):
    driver.client = 77
    for _ in range(3):
        driver.request(AddCounter(77, driver.next_id(), 1001, b"", "counter"))
    driver.set_value(driver.counters.find(11, 77), heartbeat_ms)
    driver.run_for(4 * SECOND)
    assert len(driver.stream_counters()) == 3
    driver.run_for(4 * SECOND)
    assert driver.active_counters() == []


def test_a_client_that_writes_its_heartbeat_again_stays_alive(driver):
    driver.client = 77
    driver.request(AddCounter(77, driver.next_id(), 1001, b"", "counter"))
    driver.set_value(driver.counters.find(11, 77), 1 << 62)
    driver.keeps_alive = True
    driver.run_for(20 * SECOND)
    assert len(driver.stream_counters()) == 1


def post_as_aeron(driver, command):
    """Write a command as Aeron's clients do, which expect an aligned tail."""
    ring, content = driver.cnc.to_driver, command.encode()
    size = ring.size - ring_buffer.TRAILER_LENGTH
    length = ring_buffer.RECORD_HEADER_LENGTH + len(content)
    at = add_i64(ring, size + ring_buffer.TAIL, align(length, ring_buffer.ALIGNMENT)) % size
    record = struct.pack("<ii", length, command.TYPE_ID) + content
    ring[at : at + length] = np.frombuffer(record, np.uint8)


def test_a_moved_tail_does_not_stop_commands(driver):
    ring = driver.cnc.to_driver
    add_i64(ring, ring.size - ring_buffer.TRAILER_LENGTH + ring_buffer.TAIL, 3)
    driver.run_for(2 * SECOND)
    for _ in range(3):
        post_as_aeron(driver, AddPublication(driver.client, driver.next_id(), 1001, TO_PEER))
        driver.turn(3)
        assert PublicationReady in map(type, driver.take())


@pytest.mark.parametrize("length", [-5, -(1 << 31), -200])
def test_a_claim_with_a_wrong_length_drops_no_later_command(driver, length):
    driver.client, driver.keeps_alive = 77, True
    driver.claim_command(20)
    index = int(ring_buffer.consumer_position(driver.cnc.to_driver))
    put_i32(driver.cnc.to_driver, index, length)
    ids = [driver.next_id() for _ in range(4)]
    for correlation_id in ids:
        command = AddPublication(77, correlation_id, 1001, TO_PEER)
        driver.post(command.TYPE_ID, command.encode())
    driver.run_for(12 * SECOND, 100 * MS)
    responses = [item for item in driver.take() if isinstance(item, PublicationReady)]
    assert [item.correlation_id for item in responses] == ids


def test_many_bad_channels_leave_space_for_other_errors(driver):
    for number in range(200):
        (response,) = driver.add(AddPublication, f"aeron:bad-{number}")[1]
        assert isinstance(response, ErrorResponse)
    found = read_errors(driver.cnc.error_log)
    assert len(found) == TEXTS_PER_KIND_MAX + 1
    assert sum(entry.observation_count for entry in found) == 200
    driver.driver.conductor._resources.record_error(ErrorCode.GENERIC_ERROR, "a local error")
    assert "a local error" in read_errors(driver.cnc.error_log)[-1].text


@pytest.mark.parametrize("channel", ["aeron:ipc?term-length=64k", TO_PEER])
def test_the_number_of_publications_is_limited_by_a_setting(tmp_path, channel):
    with lab(tmp_path / "few", publications_max=2, client_liveness_timeout_ns=2 * SECOND) as driver:
        responses = [driver.add(AddPublication, channel, stream)[1] for stream in range(3)]
    assert [type(item) for (item,) in responses] == [
        PublicationReady,
        PublicationReady,
        ErrorResponse,
    ]
    assert "2" in responses[2][0].message


def test_there_may_be_more_publications_than_by_default(tmp_path):
    count = 2 * Context().publications_max
    with lab(tmp_path / "many", publications_max=count) as driver:
        resources = driver.driver._resources
        sender, limits = resources.sender, resources.conductor.limits
        records = (sender.publications, sender.endpoints, limits)
        assert [each.size for each in records] == 3 * [count]


def test_an_unknown_command_has_its_own_code_in_the_error_log(driver):
    # As in the C driver, after which malformed commands are counted separately.
    for type_id in (19, 99):
        content = struct.pack("<2q", 77, 1)
        assert (
            ring_buffer.write(
                driver.cnc.to_driver, type_id, np.frombuffer(content, np.uint8), 0, 16
            )
            == ring_buffer.OK
        )
        driver.run_for(MS)
    texts = [error.text for error in read_errors(driver.cnc.error_log)]
    assert [text.partition("\n")[0] for text in texts] == ["(-6) unknown command type id"] * 2
    assert [text.rpartition(" ")[2] for text in texts] == ["19", "99"]
