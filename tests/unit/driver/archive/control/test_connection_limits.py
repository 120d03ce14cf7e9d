"""Which control sessions are established next, and which connect requests are rejected."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.archive.control.connection_limits import (
    ESTABLISHING_MAX,
    ESTABLISHING_OF_HOST_MAX,
    WAITING_MAX,
    WAITING_OF_HOST_MAX,
    next_sessions,
    require_room,
)
from windtunnel.driver.archive.control.control_session import State
from windtunnel.driver.archive.control.request_rejected import RequestRejected

HOST, OTHER_HOST = "10.0.0.1", "10.0.0.2"


def client(host, port=4000):
    return SimpleNamespace(source_identity=host if host == "aeron:ipc" else f"{host}:{port}")


def sessions(image, count, state=State.WAITING):
    return [SimpleNamespace(image=image, state=state) for _ in range(count)]


def of(found, image):
    return sum(each.image is image for each in found)


def test_the_earliest_session_of_each_client_comes_first():
    flood, single = client(HOST), client(HOST, 4001)
    found = next_sessions([*sessions(flood, 3), *sessions(single, 1)])
    assert [each.image is single for each in found] == [False, True, False, False]


def test_established_sessions_do_not_count():
    image = client(HOST)
    others = sessions(image, 100, State.ACTIVE) + sessions(image, 100, State.AUTHENTICATED)
    assert len(next_sessions([*others, *sessions(image, 20)])) == ESTABLISHING_MAX


@pytest.mark.parametrize("state", [State.INIT, State.CONNECTING, State.CHALLENGED, State.REJECTED])
def test_a_client_waits_while_its_sessions_are_being_established(state):
    image = client(HOST)
    assert len(next_sessions([*sessions(image, 15, state), *sessions(image, 5)])) == 1
    assert next_sessions([*sessions(image, 16, state), *sessions(image, 5)]) == []


def test_a_host_with_many_clients_leaves_room_for_other_hosts():
    crowd = [client(HOST, port) for port in range(1_000, 1_000 + 2 * ESTABLISHING_OF_HOST_MAX)]
    other = client(OTHER_HOST)
    waiting = [each for image in crowd for each in sessions(image, 1)]
    found = next_sessions([*waiting, *sessions(other, 1)])
    assert len(found) == ESTABLISHING_OF_HOST_MAX + 1
    assert of(found, other) == 1


def test_local_clients_are_limited_one_by_one():
    crowd = [client("aeron:ipc") for _ in range(2 * ESTABLISHING_OF_HOST_MAX)]
    waiting = [each for image in crowd for each in sessions(image, 1)]
    assert len(next_sessions(waiting)) == len(crowd)


def test_a_client_with_too_many_sessions_is_rejected():
    image, pending = client(HOST), ESTABLISHING_MAX + WAITING_MAX
    require_room(sessions(image, pending - 1), image)
    with pytest.raises(RequestRejected, match="this request publication already has 80 sessions"):
        require_room(sessions(image, pending), image)
    require_room(sessions(image, pending), client(HOST, 4001))


def test_a_host_with_too_many_sessions_is_rejected():
    pending = ESTABLISHING_OF_HOST_MAX + WAITING_OF_HOST_MAX
    crowd = [each for port in range(pending) for each in sessions(client(HOST, port), 1)]
    require_room(crowd[1:], client(HOST, 60_000))
    with pytest.raises(RequestRejected, match="this host already has 1152 sessions"):
        require_room(crowd, client(HOST, 60_000))
    require_room(crowd, client(OTHER_HOST))


def test_the_addresses_of_one_ipv6_network_are_limited_together():
    crowd = [client(f"[2001:db8::{number:x}]") for number in range(2 * ESTABLISHING_OF_HOST_MAX)]
    other = client("[2001:db8:0:1::1]")
    waiting = [each for image in crowd for each in sessions(image, 1)]
    found = next_sessions([*waiting, *sessions(other, 1)])
    assert len(found) == ESTABLISHING_OF_HOST_MAX + 1
    assert of(found, other) == 1
