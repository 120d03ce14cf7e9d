"""The link between sockets of the test: addresses, bytes, losses and delays."""

import socket
from contextlib import ExitStack

import pytest

from tests.peer.bad_link import (
    LOOPBACK,
    TO_FAR,
    TO_NEAR,
    BadLink,
    link_case,
    multicast_end,
    unicast_end,
)
from tests.peer.impairments import BAD, LATE_NS, expected_frames, expected_losses
from tests.peer.layouts import GROUPS, TERM_LENGTH
from tests.peer.ports import free_ports
from tests.unit.harness.middlebox.synthetic_case import INITIAL, data, nak, setup, status_message

STREAM_ID, SEED = 1001, 7


class Clock:
    """A clock that the test advances."""

    def __init__(self):
        self.ns = 10**9

    def now_ns(self):
        return self.ns


@pytest.fixture
def stack():
    with ExitStack() as opened:
        yield opened


def plain_socket(stack, peer=None):
    opened = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    opened.bind((LOOPBACK, 0))
    opened.settimeout(5.0)
    if peer:
        opened.connect(peer)
    return opened


def unicast_link(stack, faults, clock=None, seed=SEED):
    """Return a connected publisher, a receiver, and the link between them."""
    receiver = plain_socket(stack)
    near = unicast_end()
    case = link_case(STREAM_ID, TERM_LENGTH, faults, seed)
    link = BadLink(near, unicast_end(receiver.getsockname()), case, (clock or Clock()).now_ns)
    stack.callback(link.close)
    return plain_socket(stack, near.inlet.getsockname()), receiver, link


def arrived(receiver):
    """Return all datagrams in a socket."""
    receiver.setblocking(False)
    found = []
    while True:
        try:
            found.append(receiver.recv(65_536))
        except BlockingIOError:
            return found


def test_both_sides_use_one_address_of_the_link(stack):
    publisher, receiver, link = unicast_link(stack, ())
    sent = [setup(), data(0), data(64) + data(128)]
    for datagram in sent:
        publisher.send(datagram)
    link.turn()
    received = [receiver.recvfrom(65_536) for _ in sent]
    assert [datagram for datagram, _ in received] == sent
    (source,) = {source for _, source in received}
    receiver.sendto(status_message(), source)
    receiver.sendto(nak(), source)
    link.turn()
    assert [publisher.recv(65_536) for _ in range(2)] == [status_message(), nak()]
    assert link.is_balanced()
    assert link.frames(TO_FAR, "DATA")["frames_out"] == 3
    assert link.frames(TO_NEAR, "NAK")["frames_out"] == 1


def test_a_link_connects_two_groups(stack):
    data_group, control, far_data, far_control = GROUPS
    near_port, far_port = free_ports(2)
    link = BadLink(
        multicast_end((data_group, near_port), (control, near_port)),
        multicast_end((far_control, far_port), (far_data, far_port)),
        link_case(STREAM_ID, TERM_LENGTH, (), SEED),
    )
    stack.callback(link.close)
    publisher = multicast_end((control, near_port), (data_group, near_port))
    receiver = multicast_end((far_data, far_port), (far_control, far_port))
    for end in (publisher, receiver):
        stack.callback(end.close)
        end.inlet.settimeout(5.0)
    publisher.outlet.sendto(setup(), publisher.peer)
    link.turn()
    assert receiver.inlet.recv(65_536) == setup()
    receiver.outlet.sendto(nak(), receiver.peer)
    link.turn()
    assert publisher.inlet.recv(65_536) == nak()


@pytest.mark.parametrize("times", [1, 2])
def test_the_lost_data_depends_only_on_the_seed(stack, times):
    publisher, receiver, link = unicast_link(stack, BAD)
    while not link.frames(TO_FAR, "SETUP")["frames_out"]:
        publisher.send(setup())
        link.turn()
    arrived(receiver)
    for position, kind, length in expected_frames() * times:
        publisher.send(data(position, length, kind=int(kind == "DATA"), initial=INITIAL))
        link.turn()
    lost = expected_losses(SEED)
    assert link.lost_at_first() == lost != expected_losses(SEED + 1)
    assert 0.02 < len(lost) / len(expected_frames()) < 0.1
    assert link.fault_count > len(lost)


def test_held_datagrams_arrive_after_their_delay(stack):
    clock = Clock()
    publisher, receiver, link = unicast_link(stack, BAD[2:], clock)
    publisher.send(setup())
    link.turn()
    arrived(receiver)
    sent = [data(position) for position in range(0, 64 * 200, 64)]
    for datagram in sent:
        publisher.send(datagram)
        link.turn()
    early = arrived(receiver)
    held = [datagram for datagram in sent if datagram not in early]
    assert held
    assert not link.is_empty
    clock.ns += LATE_NS - 1
    link.turn()
    assert arrived(receiver) == []
    clock.ns += 1
    link.turn()
    assert arrived(receiver) == held
    assert link.is_empty
