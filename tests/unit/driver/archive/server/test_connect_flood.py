"""Many connect requests of one client delay only that client."""

import pytest

from tests.unit.driver.archive.server.own_archive import ControlClient, Ok
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


def flood(client, count, channel=NOWHERE):
    """Send connect requests whose responses are never read, without running the archive."""
    for number in range(count):
        request = client.connect_request(response_channel=channel, response_stream_id=500 + number)
        assert client.requests.offer(encode(request)) > 0


def session_counters(client):
    return [each for each in client.counters if each.type_id == CONTROL_SESSION_TYPE_ID]


def test_another_client_connects_without_delay(env):
    flooder, other = ControlClient(env), ControlClient(env, response_stream=21)
    flood(flooder, 150)
    env.run_for(20 * MS, step_ns=MS)
    before_ns = env.clock.now_ns()
    assert other.connect().code.name == "OK"
    assert env.clock.now_ns() - before_ns < 60 * MS
    assert other.request(ArchiveIdRequest) == Ok(77)


def test_one_client_has_a_limit_of_sessions_being_established_and_waiting(env):
    flooder = ControlClient(env)
    flood(flooder, 150)
    env.run_for(SECOND, step_ns=MS)
    assert len(session_counters(flooder.aeron)) == ESTABLISHING_MAX
    assert len(env.archive._conductor._sessions._sessions) == ESTABLISHING_MAX + WAITING_MAX
    (refused,) = [each for each in env.errors if "connect request" in each]
    assert f"expected fewer than {ESTABLISHING_MAX + WAITING_MAX}" in refused
    env.run_for(6 * SECOND)
    env.until(lambda: not session_counters(flooder.aeron), turns=30_000)
    assert not env.archive._conductor._sessions._sessions


def test_waiting_sessions_are_established_when_earlier_ones_are(env, monkeypatch):
    client = ControlClient(env)
    requests = [client.connect_request() for _ in range(ESTABLISHING_MAX + 5)]
    for request in requests:
        assert client.requests.offer(encode(request)) > 0
    env.until(lambda: all(client.response_to(each.correlation_id) for each in requests))
    assert {client.response_to(each.correlation_id).code.name for each in requests} == {"OK"}


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
