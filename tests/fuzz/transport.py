"""Transports the mailboxes' datagrams: genuine ones are delivered and recorded, mutated ones added.

mailbox --take--> carry: record the last few for each target --> deliver, or drop foreign targets
recorded --mutate, unless a guarded stream would accept it--> inject --> deliver
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.atomics import copy
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import link
from windtunnel.harness.fuzz import mutation

REMEMBERED = 64
"""Genuine datagrams that are recorded for each mailbox."""
ATTEMPTS = 8
REPLAYED, MUTATED, WITHHELD, REFUSED = 0, 1, 2, 3
"""Fields of `counts`; REFUSED ones found a full ring or a mailbox connected to another peer."""
BUSY_BYTES = 1 << 16
"""Unread bytes up to which a mailbox gets mutated datagrams: genuine ones must still fit."""


class Transport(NamedTuple):
    """The recorded genuine datagrams and the random state."""

    frames: np.ndarray  # uint8[mailboxes * REMEMBERED * KEPT]
    lengths: np.ndarray  # int64[mailboxes * REMEMBERED]
    sources: np.ndarray  # uint8[mailboxes * REMEMBERED, 28]
    counts_in: np.ndarray  # int64[mailboxes], how many were ever recorded
    rng: np.ndarray  # int64[2]
    guarded: np.ndarray  # int64[n, 2], session and stream ids
    buf: np.ndarray  # uint8[ROOM + 4096]
    other: np.ndarray  # uint8[KEPT]
    name: np.ndarray  # uint8[28]
    counts: np.ndarray  # int64[4]


def make_transport(mailboxes: int, seed: int, guarded: np.ndarray) -> Transport:
    """Create a transport that has recorded nothing. Equal seeds give equal mutations."""
    kept = mailboxes * REMEMBERED
    return Transport(
        frames=np.zeros(kept * mutation.KEPT, np.uint8),
        lengths=np.zeros(kept, np.int64),
        sources=np.zeros((kept, 28), np.uint8),
        counts_in=np.zeros(mailboxes, np.int64),
        rng=np.array([seed % 2_147_483_562 + 1, seed * 7 % 2_147_483_398 + 1], np.int64),
        guarded=guarded,
        buf=np.zeros(mutation.ROOM + 4096, np.uint8),
        other=np.zeros(mutation.KEPT, np.uint8),
        name=np.zeros(28, np.uint8),
        counts=np.zeros(4, np.int64),
    )


@kernel
def carry(links, transport):
    """Deliver every datagram to its target. Returns how many found a mailbox."""
    carried = 0
    for index in range(links.mailboxes.size):
        box = links.mailboxes[index]
        while box.is_open:
            length, name_length = link.take(
                links, index, transport.name, transport.buf, 0, mutation.ROOM
            )
            if length == link.NOTHING:
                break
            target = link.find(links, transport.name, name_length)
            if target == link.NOTHING:
                continue
            link.deliver(links, target, box.local, box.local_length, transport.buf, 0, length)
            slot = target * REMEMBERED + transport.counts_in[target] % REMEMBERED
            kept = min(length, mutation.KEPT)
            copy(transport.frames, slot * mutation.KEPT, transport.buf, 0, kept)
            transport.lengths[slot] = kept
            copy(transport.sources[slot], 0, box.local, 0, NAME_LENGTH_MAX)
            transport.counts_in[target] += 1
            carried += 1
    return carried


@kernel
def _remembered(transport, target):
    """Return the slot of a recorded datagram for a mailbox, or -1."""
    kept = min(transport.counts_in[target], REMEMBERED)
    if kept == 0:
        return -1
    return target * REMEMBERED + mutation.draw(transport.rng, kept)


@kernel
def _make(transport, slot, other):
    """Build a datagram in `transport.buf` from two recorded ones. Returns its length."""
    replay = mutation.draw(transport.rng, 32) == 0
    for _ in range(ATTEMPTS):
        length = transport.lengths[slot]
        copy(transport.buf, 0, transport.frames, slot * mutation.KEPT, length)
        if replay:
            transport.counts[REPLAYED] += 1
            return length
        other_length = transport.lengths[other]
        copy(transport.other, 0, transport.frames, other * mutation.KEPT, other_length)
        length = mutation.spoil(transport.rng, transport.buf, length, transport.other, other_length)
        if not mutation.passes_for_good(transport.buf, length, transport.guarded):
            transport.counts[MUTATED] += 1
            return length
        transport.counts[WITHHELD] += 1
    transport.counts[MUTATED] += 1
    return mutation.draw(transport.rng, 20)


@kernel
def inject(links, transport, each):
    """Inject `each` mutated datagrams into every open mailbox. Returns how many arrived."""
    arrived = 0
    for index in range(links.mailboxes.size):
        box = links.mailboxes[index]
        if box.is_open == 0:
            continue
        ring = links.rings[2 * index]
        for _ in range(each):
            if ring.tail - ring.head > BUSY_BYTES:
                break
            # Mostly a datagram for this mailbox, and sometimes one for another mailbox.
            origin = index
            if mutation.draw(transport.rng, 8) == 0:
                origin = mutation.draw(transport.rng, links.mailboxes.size)
            slot = _remembered(transport, origin)
            if slot < 0:
                continue
            other = _remembered(transport, mutation.draw(transport.rng, links.mailboxes.size))
            replayed = transport.counts[REPLAYED]
            length = _make(transport, slot, slot if other < 0 else other)
            # An unchanged datagram keeps its source, since requests are answered to their source.
            is_other_source = (
                replayed == transport.counts[REPLAYED] and mutation.draw(transport.rng, 2) == 0
            )
            copy(transport.name, 0, transport.sources[slot], 0, NAME_LENGTH_MAX)
            name_length = 16
            if box.peer_length != 0:
                copy(transport.name, 0, box.peer, 0, NAME_LENGTH_MAX)
                name_length = box.peer_length
            elif is_other_source and mutation.draw(transport.rng, 2) == 0:
                transport.name[4 + mutation.draw(transport.rng, 4)] = mutation.draw(
                    transport.rng, 256
                )
            elif is_other_source:
                transport.name[2 + mutation.draw(transport.rng, 2)] = mutation.draw(
                    transport.rng, 256
                )
            if (
                link.deliver(links, index, transport.name, name_length, transport.buf, 0, length)
                == length
            ):
                arrived += 1
            else:
                transport.counts[REFUSED] += 1
    return arrived
