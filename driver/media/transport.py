"""Datagrams leaving and arriving in batches, over sockets or links, uncopied on the way out.

    SendBatch      headers  [mmsghdr 0][mmsghdr 1] ...      one system call takes them all
                                |          |
                   vectors  [address, length] ...           straight into a term, no copy
    ReceiveBatch   headers, vectors as above, and
                   slots    | slot 0 | slot 1 | ...          uint8[n * slot length]
                   names    uint8[n, 28]                     where each one came from

An fd from 0 up is a socket, one from -2 down a mailbox of `link`, and -1 none: nothing leaves,
nothing comes. A *name* is uint8[28] with its length (`channel.socket_address`); length 0 means the
connected peer. Where a batch may join, datagrams that lie one behind the other leave as one run
(`segmentation`); a received message may be such a run, cut every `segment_length` bytes. Knows
nothing of what is inside a datagram.
"""

import errno
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.channel.socket_address import NAME_LENGTH_MAX
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import link, segmentation, system_message
from windtunnel.driver.media.segmentation import GsoBatch
from windtunnel.driver.media.system_message import (
    CONTROL_LENGTH,
    IOVEC,
    MESSAGE_LENGTH,
    is_transient,
    make_headers,
)

TRUNCATED = 0x20
"""MSG_TRUNC in the flags of a received message."""

_EINVAL, _EIO, _EMSGSIZE = errno.EINVAL, errno.EIO, errno.EMSGSIZE


class SendBatch(NamedTuple):
    """Datagrams about to leave; `set_outgoing` fills in what, `send_gathered` where to."""

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n]
    runs: GsoBatch  # for entries that leave together
    gso_enabled: np.ndarray  # int64[1], whether entries may leave as runs


class ReceiveBatch(NamedTuple):
    """What came in with the last `receive`: messages, each one datagram or a run of them."""

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n], into slots
    slots: np.ndarray  # uint8[n * slot length]
    names: np.ndarray  # uint8[n, 28], where they came from; overwritten by the next `receive`
    controls: np.ndarray  # uint8[n * CONTROL_LENGTH]


def make_send_batch(count: int, *, gso_enabled: bool = False) -> SendBatch:
    """Room for `count` datagrams in one system call."""
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    return SendBatch(
        headers=make_headers(vectors),
        vectors=vectors,
        runs=segmentation.make_run_batch(count),
        gso_enabled=np.array([int(gso_enabled)], dtype=np.int64),
    )


def make_receive_batch(count: int, slot_length: int) -> ReceiveBatch:
    """Room for `count` messages; a longer one than `slot_length` is cut off and flagged."""
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    slots = np.zeros(count * slot_length, dtype=np.uint8)
    names = np.zeros((count, NAME_LENGTH_MAX), dtype=np.uint8)
    vectors.address = slots.ctypes.data + slot_length * np.arange(count)
    vectors.length = slot_length
    headers = make_headers(vectors)
    headers.name = names.ctypes.data + NAME_LENGTH_MAX * np.arange(count)
    controls = np.zeros(count * CONTROL_LENGTH, dtype=np.uint8)
    headers.control = controls.ctypes.data + CONTROL_LENGTH * np.arange(count)
    return ReceiveBatch(headers, vectors, slots, names, controls)


@kernel
def set_outgoing(batch, index, address, length):
    """Entry `index` is `length` bytes at an absolute address, valid until they are sent."""
    vector = batch.vectors[index]
    vector.address = address
    vector.length = length


@kernel
def outgoing_length(batch, index):
    return int(batch.vectors[index].length)


@kernel
def send_gathered(fd, batch, first, count, name, name_length, links):
    """Send entries `first` .. `first + count` in one system call.

    Shapes:  name uint8[28]; length 0 sends to the connected peer
    Returns: how many left, in order from `first`; 0 when it was only not possible now; or -errno
    """
    if count <= 0 or fd == -1:
        return 0
    if fd < 0:
        return _send_on_link(fd, batch, first, count, name, name_length, links)
    name_address = name.ctypes.data if name_length > 0 else 0
    if count > 1 and batch.gso_enabled[0] != 0:
        result = segmentation.send_runs(
            fd, batch.runs, batch.vectors, first, count, name_address, name_length
        )
        if result != -_EINVAL and result != -_EIO and result != -_EMSGSIZE:
            return 0 if is_transient(result) else result
        # The way to this peer cannot cut runs up; what is sent one by one arrives as well.
        batch.gso_enabled[0] = 0
    for index in range(first, first + count):
        header = batch.headers[index]
        header.name = name_address
        header.name_length = name_length
    address = batch.headers.ctypes.data + first * MESSAGE_LENGTH
    result = system.sendmmsg(fd, address, count, system.MSG_DONTWAIT)
    return 0 if is_transient(result) else result


@kernel
def _send_on_link(fd, batch, first, count, name, name_length, links):
    mailbox = link.index_of(links, fd)
    if mailbox == link.NOTHING:
        return 0
    sent = 0
    for index in range(first, first + count):
        vector = batch.vectors[index]
        length = int(vector.length)
        datagram = bytes_at(int(vector.address), length)
        if not link.put_outbound(links, mailbox, name, name_length, datagram, 0, length):
            break
        sent += 1
    return sent


@kernel
def send_frame(fd, buf, at, length, name, name_length, links):
    """Send one datagram out of an array.

    Shapes:  buf uint8[n]; name uint8[28], length 0 for the connected peer
    Returns: `length`, 0 when it was only not possible now, or -errno
    """
    if fd == -1:
        return 0
    if fd < 0:
        mailbox = link.index_of(links, fd)
        if mailbox == link.NOTHING:
            return 0
        return length * int(link.put_outbound(links, mailbox, name, name_length, buf, at, length))
    address = buf.ctypes.data + at
    if name_length > 0:
        result = system.sendto(
            fd, address, length, system.MSG_DONTWAIT, name.ctypes.data, name_length
        )
    else:
        result = system.send(fd, address, length, system.MSG_DONTWAIT)
    return 0 if is_transient(result) else result


@kernel
def receive(fd, batch, links):
    """Take what waits at an endpoint, as far as the batch has room.

    Returns: how many datagrams came, 0 when none did, or -errno
    """
    if fd == -1:
        return 0
    if fd < 0:
        return _receive_on_link(fd, batch, links)
    for index in range(batch.headers.size):
        # The system writes how much of the room it used, so the room is told anew each time.
        batch.headers[index].name_length = NAME_LENGTH_MAX
        batch.headers[index].control_length = CONTROL_LENGTH
    result = system.recvmmsg(fd, batch.headers.ctypes.data, batch.headers.size, system.MSG_DONTWAIT)
    return 0 if is_transient(result) else result


@kernel
def _receive_on_link(fd, batch, links):
    mailbox = link.index_of(links, fd)
    if mailbox == link.NOTHING:
        return 0
    for index in range(batch.headers.size):
        room = slot_length(batch)
        length, name_length = link.take_inbound(
            links, mailbox, batch.names[index], batch.slots, index * room, room
        )
        if length == link.NOTHING:
            return index
        header = batch.headers[index]
        header.length = min(length, room)
        header.message_flags = TRUNCATED if length > room else 0
        header.control_length = 0
        header.name_length = name_length
    return batch.headers.size


@kernel
def slot_length(batch):
    return batch.slots.size // batch.headers.size


@kernel
def incoming_at(batch, index):
    """Where datagram `index` begins in `batch.slots`."""
    return index * slot_length(batch)


@kernel
def incoming_length(batch, index):
    """Bytes of datagram `index` that are in its slot."""
    return int(batch.headers[index].length)


@kernel
def segment_length(batch, index):
    """The length of each datagram of message `index`, but for a shorter last one."""
    header = batch.headers[index]
    return system_message.segment_length(
        batch.controls, index, int(header.control_length), int(header.length)
    )


@kernel
def is_truncated(batch, index):
    """Whether datagram `index` was longer than its slot: no frame is, so it is invalid."""
    return (batch.headers[index].message_flags & TRUNCATED) != 0


@kernel
def source_length(batch, index):
    return min(int(batch.headers[index].name_length), NAME_LENGTH_MAX)
