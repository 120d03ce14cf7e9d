"""Sends and receives batches of datagrams over sockets or links. Sends are zero-copy.

    SendBatch      headers  [mmsghdr 0][mmsghdr 1] ...      one system call sends all
                                |          |
                   vectors  [address, length] ...           point into a term buffer
    ReceiveBatch   headers, vectors as above, and
                   slots    | slot 0 | slot 1 | ...          uint8[n * slot length]
                   names    uint8[n, 28]                     source addresses

An fd >= 0 is a socket, an fd <= -2 a mailbox of `link`, and -1 no socket, which sends and receives
nothing. A *name* is a struct sockaddr in uint8[28] with its length (`channel.socket_address`);
length 0 means the connected peer. `send_segmented` sends adjacent datagrams as one packet
(`segmentation`). A received message may be such a packet, with segments of `segment_length` bytes.
This module does not interpret datagram contents.
"""

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
"""The MSG_TRUNC flag of a received message."""
BATCH_LENGTH = 1 << 17
"""Number of bytes that a receive call requests, if the messages are as long as the last ones."""
MESSAGES_MIN = 2
"""Minimum number of messages that a receive call requests."""


class SendBatch(NamedTuple):
    """A batch of datagrams to send. `set_outgoing` fills an entry, and `send_gathered` sends the
    entries to one destination.
    """

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n]
    gso_batch: GsoBatch  # GSO packets made of these entries


class ReceiveBatch(NamedTuple):
    """The messages that the last `receive` call returned. Each is one datagram or one GRO
    packet.
    """

    headers: np.ndarray  # MESSAGE[n]
    vectors: np.ndarray  # IOVEC[n], into slots
    slots: np.ndarray  # uint8[n * slot length]
    names: np.ndarray  # uint8[n, 28], source addresses; overwritten by the next `receive`
    controls: np.ndarray  # uint8[n * CONTROL_LENGTH]
    used: np.ndarray  # int64[1], number of messages that a system call has last returned


def make_send_batch(count: int) -> SendBatch:
    """Create a batch that can send up to `count` datagrams in one system call."""
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    return SendBatch(
        headers=make_headers(vectors),
        vectors=vectors,
        gso_batch=segmentation.make_gso_batch(count),
    )


def make_receive_batch(count: int, slot_length: int) -> ReceiveBatch:
    """Create a batch that can receive up to `count` messages. Messages longer than `slot_length`
    are truncated.
    """
    vectors = np.zeros(count, dtype=IOVEC).view(np.recarray)
    slots = np.zeros(count * slot_length, dtype=np.uint8)
    names = np.zeros((count, NAME_LENGTH_MAX), dtype=np.uint8)
    vectors.address = slots.ctypes.data + slot_length * np.arange(count)
    vectors.length = slot_length
    headers = make_headers(vectors)
    headers.name = names.ctypes.data + NAME_LENGTH_MAX * np.arange(count)
    controls = np.zeros(count * CONTROL_LENGTH, dtype=np.uint8)
    headers.control = controls.ctypes.data + CONTROL_LENGTH * np.arange(count)
    used = np.full(1, count, dtype=np.int64)
    return ReceiveBatch(headers, vectors, slots, names, controls, used)


@kernel
def set_outgoing(batch, index, address, length):
    """Set batch entry `index` to the `length` bytes at `address`, which must stay valid until they
    are sent.
    """
    vector = batch.vectors[index]
    vector.address = address
    vector.length = length


@kernel
def outgoing_length(batch, index):
    return int(batch.vectors[index].length)


@kernel
def send_gathered(fd, batch, first, count, name, name_length, links):
    """Send batch entries `first` to `first + count - 1` in one system call.

    Shapes:  name uint8[28]; length 0 sends to the connected peer
    Returns: the number sent, in order from `first`; 0 on a transient error; or -errno
    """
    if count <= 0 or fd == -1:
        return 0
    if fd < 0:
        return _send_on_link(fd, batch, first, count, name, name_length, links)
    name_address = name.ctypes.data if name_length > 0 else 0
    for index in range(first, first + count):
        header = batch.headers[index]
        header.name = name_address
        header.name_length = name_length
    address = batch.headers.ctypes.data + first * MESSAGE_LENGTH
    result = system.sendmmsg(fd, address, count, system.MSG_DONTWAIT)
    return 0 if is_transient(result) else result


@kernel
def send_segmented(fd, batch, first, count, name, name_length):
    """Send batch entries `first` to `first + count - 1` to a socket as GSO packets, in one system
    call.

    Returns: the same as `send_gathered`; nothing was sent if `segmentation.is_refusal` holds for
             the result
    """
    name_address = name.ctypes.data if name_length > 0 else 0
    result = segmentation.send_gso_packets(
        fd, batch.gso_batch, batch.vectors, first, count, name_address, name_length
    )
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
    """Send one datagram from an array.

    Shapes:  buf uint8[n]; name uint8[28], length 0 for the connected peer
    Returns: `length`, 0 on a transient error, or -errno
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
    """Receive the pending datagrams of a socket or mailbox, up to the size of the batch.

    After long messages, it requests few from a socket, so that their slots are still in the cache
    when the next ones are received.

    Returns: the number of messages, 0 if there were none, or -errno
    """
    if fd == -1:
        return 0
    if fd < 0:
        return _receive_on_link(fd, batch, links)
    longest = 1
    for index in range(batch.used[0]):
        header = batch.headers[index]
        longest = max(longest, int(header.length))
        # The system overwrites these capacities with the lengths used, so reset them.
        header.name_length = NAME_LENGTH_MAX
        header.control_length = CONTROL_LENGTH
    count = min(max(MESSAGES_MIN, BATCH_LENGTH // longest), batch.headers.size)
    result = system.recvmmsg(fd, batch.headers.ctypes.data, count, system.MSG_DONTWAIT)
    # The system writes no header of a message that it does not return.
    if result > 0:
        batch.used[0] = result
    return 0 if is_transient(result) else result


@kernel
def _receive_on_link(fd, batch, links):
    mailbox = link.index_of(links, fd)
    if mailbox == link.NOTHING:
        return 0
    for index in range(batch.headers.size):
        capacity = slot_length(batch)
        length, name_length = link.take_inbound(
            links, mailbox, batch.names[index], batch.slots, index * capacity, capacity
        )
        if length == link.NOTHING:
            return index
        header = batch.headers[index]
        header.length = min(length, capacity)
        header.message_flags = TRUNCATED if length > capacity else 0
        header.control_length = 0
        header.name_length = name_length
    return batch.headers.size


@kernel
def slot_length(batch):
    return batch.slots.size // batch.headers.size


@kernel
def incoming_at(batch, index):
    """Return the offset of a received message in `batch.slots`."""
    return index * slot_length(batch)


@kernel
def incoming_length(batch, index):
    """Return the length of a received message in bytes."""
    return int(batch.headers[index].length)


@kernel
def segment_length(batch, index):
    """Return the length of each datagram in message `index`. The last datagram may be shorter."""
    header = batch.headers[index]
    return system_message.segment_length(
        batch.controls, index, int(header.control_length), int(header.length)
    )


@kernel
def is_truncated(batch, index):
    """Return whether message `index` was longer than its receive buffer and is therefore
    invalid.
    """
    return (batch.headers[index].message_flags & TRUNCATED) != 0


@kernel
def source_length(batch, index):
    return min(int(batch.headers[index].name_length), NAME_LENGTH_MAX)
