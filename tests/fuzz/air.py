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
"""Good datagrams that are kept for each mailbox."""
ATTEMPTS = 8
REPLAYED, SPOILT, WITHHELD, REFUSED = 0, 1, 2, 3
"""Fields of `counts`; REFUSED ones found a full ring or a mailbox that hears another peer only."""
BUSY_BYTES = 1 << 16
"""A mailbox with so much unread gets nothing more: a genuine datagram must still find room."""


class Air(NamedTuple):
    """The recorded genuine datagrams and the random state."""

    frames: np.ndarray  # uint8[mailboxes * REMEMBERED * KEPT]
    lengths: np.ndarray  # int64[mailboxes * REMEMBERED]
    sources: np.ndarray  # uint8[mailboxes * REMEMBERED, 28]
    counts_in: np.ndarray  # int64[mailboxes], how many were ever kept
    rng: np.ndarray  # int64[2]
    guarded: np.ndarray  # int64[n, 2], session and stream ids
    buf: np.ndarray  # uint8[ROOM + 4096]
    other: np.ndarray  # uint8[KEPT]
    name: np.ndarray  # uint8[28]
    counts: np.ndarray  # int64[4]


def make_air(mailboxes: int, seed: int, guarded: np.ndarray) -> Air:
    """Create empty air; the same seed reproduces the storm."""
    kept = mailboxes * REMEMBERED
    return Air(
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
def carry(links, air):
    """Deliver every datagram to its target. Returns how many found a mailbox."""
    carried = 0
    for index in range(links.mailboxes.size):
        box = links.mailboxes[index]
        while box.is_open:
            length, name_length = link.take(links, index, air.name, air.buf, 0, mutation.ROOM)
            if length == link.NOTHING:
                break
            target = link.find(links, air.name, name_length)
            if target == link.NOTHING:
                continue
            link.deliver(links, target, box.local, box.local_length, air.buf, 0, length)
            slot = target * REMEMBERED + air.counts_in[target] % REMEMBERED
            kept = min(length, mutation.KEPT)
            copy(air.frames, slot * mutation.KEPT, air.buf, 0, kept)
            air.lengths[slot] = kept
            copy(air.sources[slot], 0, box.local, 0, NAME_LENGTH_MAX)
            air.counts_in[target] += 1
            carried += 1
    return carried


@kernel
def _remembered(air, target):
    """A recorded datagram that went to a mailbox, or -1."""
    kept = min(air.counts_in[target], REMEMBERED)
    if kept == 0:
        return -1
    return target * REMEMBERED + mutation.draw(air.rng, kept)


@kernel
def _make(air, slot, other):
    """Build a datagram in `air.buf` from two recorded ones. Returns its length."""
    replay = mutation.draw(air.rng, 32) == 0
    for _ in range(ATTEMPTS):
        length = air.lengths[slot]
        copy(air.buf, 0, air.frames, slot * mutation.KEPT, length)
        if replay:
            air.counts[REPLAYED] += 1
            return length
        other_length = air.lengths[other]
        copy(air.other, 0, air.frames, other * mutation.KEPT, other_length)
        length = mutation.spoil(air.rng, air.buf, length, air.other, other_length)
        if not mutation.passes_for_good(air.buf, length, air.guarded):
            air.counts[SPOILT] += 1
            return length
        air.counts[WITHHELD] += 1
    air.counts[SPOILT] += 1
    return mutation.draw(air.rng, 20)


@kernel
def inject(links, air, each):
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
            # Mostly what this mailbox knows; now and then what was meant for another.
            origin = index
            if mutation.draw(air.rng, 8) == 0:
                origin = mutation.draw(air.rng, links.mailboxes.size)
            slot = _remembered(air, origin)
            if slot < 0:
                continue
            other = _remembered(air, mutation.draw(air.rng, links.mailboxes.size))
            replayed = air.counts[REPLAYED]
            length = _make(air, slot, slot if other < 0 else other)
            # What nobody changed comes from where it came before: a requester moves with its words.
            is_strange = replayed == air.counts[REPLAYED] and mutation.draw(air.rng, 2) == 0
            copy(air.name, 0, air.sources[slot], 0, NAME_LENGTH_MAX)
            name_length = 16
            if box.peer_length != 0:
                copy(air.name, 0, box.peer, 0, NAME_LENGTH_MAX)
                name_length = box.peer_length
            elif is_strange and mutation.draw(air.rng, 2) == 0:
                air.name[4 + mutation.draw(air.rng, 4)] = mutation.draw(air.rng, 256)
            elif is_strange:
                air.name[2 + mutation.draw(air.rng, 2)] = mutation.draw(air.rng, 256)
            if link.deliver(links, index, air.name, name_length, air.buf, 0, length) == length:
                arrived += 1
            else:
                air.counts[REFUSED] += 1
    return arrived
