"""An in-memory link that carries datagrams between the agents of one process.

    agent --send--> outbound ring --take--> simulator --deliver--> inbound ring --receive--> agent

The simulator moves the datagrams. An endpoint is a mailbox with two rings. Its fd is -(index + 2),
because -1 means "no socket". A ring is a byte range with one record per datagram, 8-byte aligned
and never wrapped at the end of the ring:

    0        4       8                36        40             68            72
    +--------+-------+----------------+---------+--------------+-------------+---------
    | record | bytes | source name    | source  | destination  | destination | bytes ...
    | length |       |                | length  | name         | length      |
    +--------+-------+----------------+---------+--------------+-------------+---------

`bytes` is -1 in the filler record before the end of the ring. An empty ring restarts at its
first byte, so a simulation touches few pages. A full ring drops datagrams, as a full socket buffer
does. Not thread-safe: a simulation steps its agents one after the other. The simulator adds loss
and delay.
Records are not validated, because only these kernels write the rings.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import copy, get_i32, put_i32
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel

LENGTH = 4
SOURCE = 8
SOURCE_LENGTH = SOURCE + NAME_LENGTH_MAX
DESTINATION = SOURCE_LENGTH + 4
DESTINATION_LENGTH = DESTINATION + NAME_LENGTH_MAX
HEADER_LENGTH = DESTINATION_LENGTH + 4
FILLER = -1
NOTHING = -1
NOT_FOR_US = -2

FIRST_FD = -2
"""File descriptor of mailbox 0. Mailbox i has the file descriptor -(i + 2)."""

RING = np.dtype(
    (
        np.record,
        [
            ("head", "i8"),  # bytes consumed since the ring was last empty
            ("tail", "i8"),  # bytes produced since then
        ],
    )
)

MAILBOX = np.dtype(
    (
        np.record,
        [
            ("is_open", "i8"),
            ("local_length", "i8"),
            ("local", "u1", (NAME_LENGTH_MAX,)),  # the address that others send to
            ("peer_length", "i8"),  # 0: not connected, receives from any source
            ("peer", "u1", (NAME_LENGTH_MAX,)),  # the only source of a connected mailbox
        ],
    )
)


class Links(NamedTuple):
    """All mailboxes of a process, and their rings. There are none if the process uses only real
    sockets.
    """

    mailboxes: np.ndarray  # MAILBOX[n]
    rings: np.ndarray  # RING[2 n]: inbound of mailbox i at 2 i, outbound at 2 i + 1
    memory: np.ndarray  # uint8[2 n * ring length]


def make_links(count: int, ring_length: int = 1 << 20) -> Links:
    """Create `count` closed mailboxes with rings of `ring_length` bytes, a multiple of 8."""
    assert ring_length % 8 == 0, f"ring length {ring_length} is not a multiple of 8"
    return Links(
        mailboxes=np.zeros(count, dtype=MAILBOX).view(np.recarray),
        rings=np.zeros(2 * count, dtype=RING).view(np.recarray),
        memory=np.zeros(2 * count * ring_length, dtype=np.uint8),
    )


NO_LINKS = make_links(0)


@kernel
def index_of(links, fd):
    """Return the index of the open mailbox with this file descriptor, or NOTHING if no mailbox has
    it.
    """
    index = FIRST_FD - fd
    if index < 0 or index >= links.mailboxes.size or links.mailboxes[index].is_open == 0:
        return NOTHING
    return index


@kernel
def _ring_length(links):
    return links.memory.size // links.rings.size


@kernel
def _claim(links, ring, length):
    """Claim space for a datagram in a ring. Returns the space's offset in `memory`, or NOTHING if
    the ring is full.
    """
    ring_length = _ring_length(links)
    needed = align(HEADER_LENGTH + length, 8)
    state = links.rings[ring]
    if state.head == state.tail:
        state.head = state.tail = 0
    free = ring_length - (state.tail - state.head)
    index = state.tail % ring_length
    to_end = ring_length - index
    if needed > to_end:
        if needed + to_end > free:
            return NOTHING
        put_i32(links.memory, ring * ring_length + index, to_end)
        put_i32(links.memory, ring * ring_length + index + LENGTH, FILLER)
        state.tail += to_end
        index = 0
    elif needed > free:
        return NOTHING
    at = ring * ring_length + index
    put_i32(links.memory, at, needed)
    put_i32(links.memory, at + LENGTH, length)
    state.tail += needed
    return at


@kernel
def _peek(links, ring):
    """Return the offset in `memory` of the oldest datagram, or NOTHING if the ring is empty."""
    ring_length = _ring_length(links)
    state = links.rings[ring]
    for _ in range(2):
        if state.head >= state.tail:
            return NOTHING
        at = ring * ring_length + state.head % ring_length
        if get_i32(links.memory, at + LENGTH) != FILLER:
            return at
        state.head += get_i32(links.memory, at)
    return NOTHING


@kernel
def _release(links, ring, at):
    links.rings[ring].head += get_i32(links.memory, at)


@kernel
def _put_name(memory, at, length_at, name, length):
    length = max(0, min(length, NAME_LENGTH_MAX))
    copy(memory, at, name, 0, length)
    put_i32(memory, length_at, length)


@kernel
def _get_name(memory, at, length_at, name):
    length = get_i32(memory, length_at)
    copy(name, 0, memory, at, length)
    return length


@kernel
def put_outbound(links, index, name, name_length, buf, at, length):
    """Send a datagram from a mailbox to `name`, or to the mailbox's peer if `name_length` is 0.

    Shapes:  name uint8[28]; buf uint8[n]
    Returns: False if the ring is full or there is no destination
    """
    mailbox = links.mailboxes[index]
    if name_length == 0 and mailbox.peer_length == 0:
        return False
    record = _claim(links, 2 * index + 1, length)
    if record == NOTHING:
        return False
    memory = links.memory
    _put_name(memory, record + SOURCE, record + SOURCE_LENGTH, mailbox.local, mailbox.local_length)
    to, to_length = record + DESTINATION, record + DESTINATION_LENGTH
    if name_length == 0:
        _put_name(memory, to, to_length, mailbox.peer, mailbox.peer_length)
    else:
        _put_name(memory, to, to_length, name, name_length)
    copy(memory, record + HEADER_LENGTH, buf, at, length)
    return True


@kernel
def take_inbound(links, index, name, buf, at, length_max):
    """Receive the oldest datagram that was delivered to a mailbox, and its source address.

    Shapes:  name uint8[28]; buf uint8[n]
    Returns: (datagram length or NOTHING, name length); at most `length_max` bytes are copied
    """
    return _take(links, 2 * index, SOURCE, SOURCE_LENGTH, name, buf, at, length_max)


@kernel
def take(links, index, name, buf, at, length_max):
    """Take the oldest datagram that a mailbox sent. Called by the simulator.

    Returns: (datagram length or NOTHING, name length)
    """
    return _take(links, 2 * index + 1, DESTINATION, DESTINATION_LENGTH, name, buf, at, length_max)


@kernel
def _take(links, ring, name_at, name_length_at, name, buf, at, length_max):
    record = _peek(links, ring)
    if record == NOTHING:
        return NOTHING, 0
    memory = links.memory
    length = get_i32(memory, record + LENGTH)
    copy(buf, at, memory, record + HEADER_LENGTH, min(length, length_max))
    name_length = _get_name(memory, record + name_at, record + name_length_at, name)
    _release(links, ring, record)
    return length, name_length


@kernel
def deliver(links, index, source, source_length, buf, at, length):
    """Deliver a datagram from the simulator to mailbox `index`.

    Shapes:  source uint8[28]; buf uint8[n]
    Returns: `length`, NOTHING if the mailbox is closed or full, or NOT_FOR_US if it is connected to
             another peer
    """
    mailbox = links.mailboxes[index]
    if mailbox.is_open == 0:
        return NOTHING
    if mailbox.peer_length != 0 and not socket_address.same(
        mailbox.peer, mailbox.peer_length, source, source_length
    ):
        return NOT_FOR_US
    record = _claim(links, 2 * index, length)
    if record == NOTHING:
        return NOTHING
    memory = links.memory
    _put_name(memory, record + SOURCE, record + SOURCE_LENGTH, source, source_length)
    to, to_length = record + DESTINATION, record + DESTINATION_LENGTH
    _put_name(memory, to, to_length, mailbox.local, mailbox.local_length)
    copy(memory, record + HEADER_LENGTH, buf, at, length)
    return length


@kernel
def find(links, name, name_length):
    """Return the index of the open mailbox with this address, or NOTHING if no mailbox has it."""
    for index in range(links.mailboxes.size):
        mailbox = links.mailboxes[index]
        if mailbox.is_open != 0 and socket_address.same(
            mailbox.local, mailbox.local_length, name, name_length
        ):
            return index
    return NOTHING
