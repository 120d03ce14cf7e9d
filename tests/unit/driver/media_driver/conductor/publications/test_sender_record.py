"""The records that the sender gets for a new publication."""

import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import SECOND, STREAM, lab_with_long_timeouts
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.publication import AddPublication, RemovePublication
from windtunnel.driver.media_driver.sender import flow_control

CHANNEL = "aeron:udp?control=10.0.0.1:24325|control-mode=dynamic|term-length=64k|fc=min"
CONTROL = SocketAddress("10.0.0.1", 24_325)
BATCH = 256


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        yield opened


def publish(driver):
    """Add a publication. Returns its registration id and a function that sends status messages."""
    registration_id, responses = driver.add(AddPublication, CHANNEL)
    ready = responses[-1]
    term_id = driver.open_log(ready.log_file_name).initial_term_id

    def report(receiver_id, window):
        ids = (ready.session_id, STREAM)
        fields = (36, 0, 0, wire.SM, *ids, term_id, 0, window, receiver_id)
        assert driver.send(CONTROL, wire.pack("status_message", *fields)) > 0

    return registration_id, report


def test_a_publication_does_not_wait_for_receivers_of_the_previous_one_in_its_slot(driver):
    first_id, report = publish(driver)
    for receiver in range(flow_control.RECEIVERS_MAX + BATCH):
        report(receiver, 1024)
        if receiver % BATCH == 0:
            driver.turn(BATCH // 8)
    driver.turn(BATCH // 8)
    assert driver.named("fc-receivers").value == flow_control.RECEIVERS_MAX
    driver.request(RemovePublication(driver.client, driver.next_id(), first_id, False))
    driver.run_for(10 * SECOND)
    assert driver.stream_counters() == []
    _, report = publish(driver)
    report(1, 8192)
    driver.turn(10)
    assert driver.named("fc-receivers").value == 1
    assert driver.named("snd-lmt").value == 8192


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 128),
        ({"udp_offload": False}, 4),
        ({"messages_per_send_max": 4}, 4),
        ({"messages_per_send_max": 16}, 16),
        ({"messages_per_send_max": 1, "udp_offload": False}, 1),
    ],
)
def test_messages_per_send_depend_on_the_setting_and_on_offload(tmp_path, settings, expected):
    with lab_with_long_timeouts(tmp_path / "aeron", **settings) as driver:
        publish(driver)
        record = driver.driver.conductor._resources.sender.publications[0]
        assert record.max_messages_per_send == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", 0),
        ("|init-term-id=-3|term-id=-3|term-offset=1024", 1024),
        ("|init-term-id=-3|term-id=2|term-offset=96", 5 * 65_536 + 96),
        ("|init-term-id=2147483647|term-id=-2147483648|term-offset=65536", 2 * 65_536),
    ],
)
def test_the_record_has_the_initial_position_of_the_stream(driver, more, expected):
    driver.add(AddPublication, CHANNEL + more)
    assert driver.driver.conductor._resources.sender.publications[0].initial_position == expected


@pytest.mark.parametrize(
    ("more", "settings", "expected"),
    [
        ("", {}, 0),
        ("", {"retransmit_ranges": True}, 1),
        ("|windtunnel.retransmit-ranges=true", {}, 1),
        ("|windtunnel.retransmit-ranges=false", {"retransmit_ranges": True}, 0),
    ],
)
def test_only_a_publication_with_retransmit_ranges_has_their_counters(
    tmp_path, more, settings, expected
):
    with lab_with_long_timeouts(tmp_path / "aeron", **settings) as driver:
        driver.add(AddPublication, CHANNEL + more)
        record = driver.driver.conductor._resources.sender.publications[0]
        assert record.has_retransmit_ranges == expected
        found = {item.type_id: item for item in driver.stream_counters() if item.type_id > 1_000}
        names = [found[each].label.partition(":")[0] for each in sorted(found)]
        ids = [found[each].counter_id for each in sorted(found)]
        if expected:
            assert names == ["snd-retransmit-ranges", "snd-bytes-not-resent", "snd-rtt"]
            assert ids == [record.ranges_id, record.bytes_not_resent_id, record.rtt_id]
            assert [item.value for item in found.values()] == [0, 0, 0]
            assert driver.named("fc-receivers").value == 0
        else:
            assert names == []
