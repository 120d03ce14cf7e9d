"""Determines in one system call whether any socket of an agent has received anything.

An idle agent polls its sockets in each duty cycle. A receive call without a datagram takes 270 ns,
and there is one for each socket; querying an epoll instance for all of them takes 90 ns. An agent
that received something in its last poll skips the query. An agent whose idle strategy sleeps is
woken by a datagram.

    add, remove    --> epoll instance <-- arriving datagrams, errors
    is_quiet, park <--+

A gate without an epoll instance, or with a socket that is not registered, is never quiet. So are
gates of simulated sockets. Source: Linux epoll_ctl(2), epoll_wait(2), ppoll(2).
"""

import errno
import select

import numpy as np

from windtunnel.driver.base import idle, system
from windtunnel.driver.kernels.jit import kernel

GATE = np.dtype(
    (
        np.record,
        [
            ("fd", "i8"),  # epoll instance, or -1
            ("unregistered", "i8"),  # sockets that the epoll instance does not watch
            ("is_busy", "i8"),  # the last poll received something
            # Each is a struct epoll_event, 12 or 16 bytes, which begins with the events as uint32.
            ("request", "u4", (4,)),  # of all sockets, constant
            ("answer", "u4", (4,)),  # of `epoll_wait`, never read
        ],
    )
)
_REQUEST, _ANSWER = (int(dict(GATE.fields or {})[name][1]) for name in ("request", "answer"))
_ADD, _DELETE = 1, 2
_ENOENT = errno.ENOENT


def make_gate() -> np.recarray:
    """Create a gate without an epoll instance, GATE[1]."""
    gate = np.zeros(1, dtype=GATE).view(np.recarray)
    gate[0].fd = -1
    gate[0].request[0] = select.EPOLLIN
    return gate


@kernel
def add(gate, fd):
    """Let a gate watch a socket that the agent is going to poll. An fd of -1 is ignored."""
    if fd == -1:
        return
    if system.epoll_ctl(gate[0].fd, _ADD, fd, gate.ctypes.data + _REQUEST) < 0:
        gate[0].unregistered += 1


@kernel
def remove(gate, fd):
    """Let a gate forget a socket, before it is closed."""
    if fd == -1:
        return
    result = system.epoll_ctl(gate[0].fd, _DELETE, fd, gate.ctypes.data + _REQUEST)
    # A socket that was closed too early may have been registered or not. Polling is always right.
    if result == -_ENOENT:
        gate[0].unregistered -= 1


@kernel
def is_quiet(gate):
    """Return whether no socket has a datagram or an error. False if that is not known."""
    rec = gate[0]
    if rec.is_busy != 0 or rec.fd < 0 or rec.unregistered > 0:
        return False
    return system.epoll_wait(rec.fd, gate.ctypes.data + _ANSWER, 1, 0) == 0


@kernel
def park(gate, length_ns):
    """Sleep for about `length_ns`, but only until a socket has a datagram or an error. Do nothing
    if it is `idle.NO_PARK`.
    """
    if length_ns == idle.NO_PARK:
        return
    rec = gate[0]
    if rec.fd < 0 or rec.unregistered > 0 or system.wait_readable(rec.fd, length_ns) < 0:
        system.sleep_ns(length_ns)


@kernel
def after_poll(gate, count):
    """Record how many datagrams a poll of all sockets has received."""
    gate[0].is_busy = int(count > 0)
