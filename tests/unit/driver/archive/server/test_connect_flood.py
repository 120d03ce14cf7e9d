"""Many connect requests of one client delay only that client."""

import pytest

from tests.unit.driver.archive.server.own_archive import Ok, Talker
from windtunnel.driver.archive.control.connection_limits import (
    ESTABLISHING_MAX,
    WAITING_MAX,
    host_of,
)
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest

MS, SECOND = 1_000_000, 1_000_000_000
NOWHERE = "aeron:udp?endpoint=10.0.0.2:40456"
CONTROL_SESSION_TYPE_ID = 113


def flood(talker, count, channel=NOWHERE):
    """Send connect requests, whose responses nobody receives, without a turn of the archive."""
    for number in range(count):
        request = talker.connect_request(response_channel=channel, response_stream_id=500 + number)
        assert talker.requests.offer(encode(request)) > 0


def session_counters(client):
    return [each for each in client.counters if each.type_id == CONTROL_SESSION_TYPE_ID]


def test_another_client_connects_without_delay(own):
    stranger, friend = Talker(own), Talker(own, response_stream=21)
    flood(stranger, 150)
    own.run_for(20 * MS, step_ns=MS)
    before_ns = own.clock.now_ns()
    assert friend.connect().code.name == "OK"
    assert own.clock.now_ns() - before_ns < 60 * MS
    assert friend.ask(ArchiveIdRequest) == Ok(77)


def test_one_client_establishes_few_sessions_at_a_time_and_the_rest_is_refused(own):
    stranger = Talker(own)
    flood(stranger, 150)
    own.run_for(SECOND, step_ns=MS)
    assert len(session_counters(stranger.client)) == ESTABLISHING_MAX
    assert len(own.archive._conductor._sessions._sessions) == ESTABLISHING_MAX + WAITING_MAX
    (refused,) = [each for each in own.errors if "connect request" in each]
    assert f"expected fewer than {ESTABLISHING_MAX + WAITING_MAX}" in refused
    own.run_for(6 * SECOND)
    own.until(lambda: not session_counters(stranger.client), turns=30_000)
    assert not own.archive._conductor._sessions._sessions


def test_sessions_beyond_the_limit_are_established_when_others_are(own, monkeypatch):
    talker = Talker(own)
    requests = [talker.connect_request() for _ in range(ESTABLISHING_MAX + 5)]
    for request in requests:
        assert talker.requests.offer(encode(request)) > 0
    own.until(lambda: all(talker.answer(each.correlation_id) for each in requests))
    assert {talker.answer(each.correlation_id).code.name for each in requests} == {"OK"}


@pytest.mark.parametrize(
    ("identity", "host"),
    [
        ("10.0.0.1:4000", "10.0.0.1"),
        ("[::ffff:10.0.0.1]:4000", "10.0.0.1"),
        ("[2001:db8::1:2:3:4]:4000", "2001:db8::/64%"),
        ("[2001:db8::]:4001", "2001:db8::/64%"),
        ("[2001:db8:0:1::1]:4000", "2001:db8:0:1::/64%"),
        ("[fe80::1%3]:4000", "fe80::/64%3"),
        ("aeron:ipc", "aeron:ipc"),
    ],
)
def test_the_host_of_a_client_is_its_address_or_its_network(identity, host):
    assert host_of(identity) == host
