"""A gate is quiet only if no socket of its agent has anything to receive."""

import random
import select
import socket
import time

import pytest

from windtunnel.driver.base.idle import NO_PARK
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.media import socket_gate


class Sockets:
    """Bound sockets on loopback, and one that sends to them."""

    def __init__(self, count):
        self.all = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
        for each in self.all:
            each.bind(("127.0.0.1", 0))
            each.setblocking(False)
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send_to(self, index):
        self._sender.sendto(b"datagram", self.all[index].getsockname())

    def close(self):
        for each in (*self.all, self._sender):
            each.close()


@pytest.fixture
def sockets():
    found = Sockets(4)
    yield found
    found.close()


@pytest.fixture
def gate():
    with select.epoll() as epoll:
        made = socket_gate.make_gate()
        made[0].fd = epoll.fileno()
        yield made


def drain(handle):
    count = 0
    try:
        while handle.recv(100):
            count += 1
    except BlockingIOError:
        return count


def test_it_agrees_with_a_check_of_each_socket(sockets, gate):
    rng, watched, pending = random.Random(1), set(), [0] * len(sockets.all)
    for _ in range(400):
        index = rng.randrange(len(sockets.all))
        action = rng.choice(("toggle", "send", "drain", "drain"))
        handle = sockets.all[index]
        if action == "toggle" and index in watched:
            socket_gate.remove(gate, handle.fileno())
            watched.remove(index)
        elif action == "toggle":
            socket_gate.add(gate, handle.fileno())
            watched.add(index)
        elif action == "send":
            sockets.send_to(index)
            pending[index] += 1
        else:
            assert drain(handle) == pending[index]
            pending[index] = 0
        assert socket_gate.is_quiet(gate) == (not any(pending[each] for each in watched))


def test_a_gate_is_not_quiet_after_a_poll_that_received_something(sockets, gate):
    socket_gate.add(gate, sockets.all[0].fileno())
    socket_gate.after_poll(gate, 3)
    assert not socket_gate.is_quiet(gate)
    socket_gate.after_poll(gate, 0)
    assert socket_gate.is_quiet(gate)


def test_an_error_of_a_socket_is_not_quiet(sockets, gate):
    closed = sockets.all[1].getsockname()
    sockets.all[1].close()
    handle = sockets.all[0]
    handle.connect(closed)
    socket_gate.add(gate, handle.fileno())
    handle.send(b"refused")
    assert not socket_gate.is_quiet(gate)
    with pytest.raises(ConnectionRefusedError):
        handle.recv(100)
    assert socket_gate.is_quiet(gate)


def test_a_gate_without_an_epoll_instance_is_never_quiet(sockets):
    gate = socket_gate.make_gate()
    assert not socket_gate.is_quiet(gate)
    socket_gate.add(gate, sockets.all[0].fileno())
    socket_gate.remove(gate, sockets.all[0].fileno())
    assert not socket_gate.is_quiet(gate)


@pytest.mark.parametrize("fd", [-2, 1_000_000])
def test_a_gate_is_never_quiet_while_it_does_not_watch_a_socket(sockets, gate, fd):
    socket_gate.add(gate, sockets.all[0].fileno())
    socket_gate.add(gate, fd)
    assert not socket_gate.is_quiet(gate)
    socket_gate.remove(gate, sockets.all[0].fileno())
    assert not socket_gate.is_quiet(gate)


def test_a_missing_socket_is_not_watched(gate):
    socket_gate.add(gate, -1)
    assert socket_gate.is_quiet(gate)
    socket_gate.remove(gate, -1)
    assert gate[0].unregistered == 0


def test_a_socket_that_two_endpoints_share_stays_watched(sockets, gate):
    fd = sockets.all[0].fileno()
    socket_gate.add(gate, fd)
    socket_gate.add(gate, fd)
    socket_gate.remove(gate, fd)
    sockets.send_to(0)
    assert not socket_gate.is_quiet(gate)
    drain(sockets.all[0])
    socket_gate.remove(gate, fd)
    assert gate[0].unregistered == 0
    assert socket_gate.is_quiet(gate)


def test_a_parked_agent_is_woken_by_a_datagram(sockets, gate):
    for each in sockets.all:
        socket_gate.add(gate, each.fileno())
    began_ns = time.monotonic_ns()
    sockets.send_to(2)
    socket_gate.park(gate, 100 * NS_PER_SECOND)
    assert drain(sockets.all[2]) == 1
    socket_gate.park(gate, 2_000_000)
    assert 2_000_000 <= time.monotonic_ns() - began_ns < 100 * NS_PER_SECOND
    for length_ns in (0, NO_PARK):
        socket_gate.park(gate, length_ns)


@pytest.mark.parametrize("fd", [-1, 1_000_000])
def test_an_agent_sleeps_without_a_gate_that_watches_its_sockets(sockets, gate, fd):
    if fd == -1:
        gate[0].fd = -1
    socket_gate.add(gate, sockets.all[0].fileno())
    socket_gate.add(gate, fd)
    sockets.send_to(0)
    began_ns = time.monotonic_ns()
    socket_gate.park(gate, 3_000_000)
    assert time.monotonic_ns() - began_ns >= 3_000_000
