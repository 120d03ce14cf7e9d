"""The system calls that a real driver makes most often, as kernels.

    recvmmsg, recvmsg             inbound ring of the socket's mailbox --> buffers of the message
    sendmmsg, sendmsg, send       buffers of the message --> outbound ring
    clock_gettime                 the world's time

Addresses are of the caller's memory, which is not validated, because a real system call reads and
writes the same bytes. The descriptor's words in the table are valid if the first is not 0.
Returns: the result of the system call, -errno, or UNUSUAL, after which the version in Python, see
`system_calls`, must be called. It has changed nothing then but the count of calls.
Source: Linux recvmmsg(2), sendmmsg(2); `driver.media.link` for the rings.
"""

from __future__ import annotations

import errno
import socket
from typing import Any

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    bytes_at,
    copy,
    get_i32,
    get_i64,
    get_u16,
    put_i32,
    put_i64,
    zero,
)
from windtunnel.driver.channel.socket_address import V4_ADDRESS, V4_LENGTH
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media.link import (
    DESTINATION,
    DESTINATION_LENGTH,
    FILLER,
    HEADER_LENGTH,
    LENGTH,
    MAILBOX,
    RING,
    SOURCE,
    SOURCE_LENGTH,
)
from windtunnel.driver.media.system_message import IOVEC, MESSAGE
from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    CALLS_MAX,
    CURRENT_AT,
    FIRST_DESCRIPTOR,
    NOW_AT,
    SOCKET_MAILBOX,
    SOCKET_MEMORY,
    SOCKET_RING,
    SOCKET_RING_BYTES,
    SOCKET_WORDS,
    SOCKETS,
    SOCKETS_MAX,
    STEPS_AT,
    WORDS,
)
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

UNUSUAL = -(1 << 32)
DATAGRAM_BYTES_MAX = 1 << 16

MESSAGE_BYTES, VECTOR_BYTES = MESSAGE.itemsize, IOVEC.itemsize
_OF_MESSAGE = dict(MESSAGE.fields or {})
NAME, NAME_LENGTH, VECTOR, VECTOR_COUNT, CONTROL_LENGTH, FLAGS, MESSAGE_LENGTH = (
    _OF_MESSAGE[each][1]
    for each in (
        *("name", "name_length", "vectors", "vector_count", "control_length", "message_flags"),
        "length",
    )
)
"""Offsets in a `struct mmsghdr`. MESSAGE_LENGTH is also the length of the `struct msghdr` in it."""
VECTOR_LENGTH = dict(IOVEC.fields or {})["length"][1]
"""Offset of the length in a `struct iovec`."""

REALTIME, REALTIME_COARSE = 0, 5
_NS_PER_SECOND = 1_000_000_000
_EAGAIN, _TRUNCATED, _INET = errno.EAGAIN, int(socket.MSG_TRUNC), int(socket.AF_INET)
_WORD = 8
_RING_STATE_BYTES, _MAILBOX_BYTES = RING.itemsize, MAILBOX.itemsize
_OF_RING, _OF_MAILBOX = dict(RING.fields or {}), dict(MAILBOX.fields or {})
_HEAD, _TAIL = (_OF_RING[each][1] for each in ("head", "tail"))
_LOCAL, _LOCAL_LENGTH, _PEER, _PEER_LENGTH = (
    _OF_MAILBOX[each][1] for each in ("local", "local_length", "peer", "peer_length")
)


@kernel
def _is_usual(table: Any) -> bool:
    """Count a call. Returns whether a world runs and the next check of the count is not due."""
    calls = get_i64(table, _WORD * CALLS) + 1
    put_i64(table, _WORD * CALLS, calls)
    return bool(calls < CALLS_MAX and get_i64(table, _WORD * NOW_AT) != 0)


@kernel
def _usual_socket(table: Any, descriptor: int) -> int:
    """Count a call. Returns the offset of the socket's words in the table, or 0 if it has none
    there or the call is unusual.
    """
    if not _is_usual(table):
        return 0
    index = descriptor - FIRST_DESCRIPTOR
    if index < 0 or index >= SOCKETS_MAX:
        return 0
    at = _WORD * (SOCKETS + index * SOCKET_WORDS)
    return at if get_i64(table, at + _WORD * SOCKET_RING) != 0 else 0


@kernel
def clock_gettime(table_at: int, which: int, time_at: int) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    if not _is_usual(table):
        return UNUSUAL
    now_ns = get_i64(bytes_at(get_i64(table, _WORD * NOW_AT), _WORD), 0)
    if which in (REALTIME, REALTIME_COARSE):
        host = get_i64(bytes_at(get_i64(table, _WORD * CURRENT_AT), _WORD), 0)
        step_at = get_i64(table, _WORD * STEPS_AT) + _WORD * host
        now_ns += EPOCH_NS + get_i64(bytes_at(step_at, _WORD), 0)
    time = bytes_at(time_at, 2 * _WORD)
    put_i64(time, 0, now_ns // _NS_PER_SECOND)
    put_i64(time, _WORD, now_ns % _NS_PER_SECOND)
    return 0


@kernel
def recvmmsg(
    table_at: int, descriptor: int, messages_at: int, count: int, flags: int, timeout: int
) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    at = _usual_socket(table, descriptor)
    if at == 0:
        return UNUSUAL
    for index in range(count):
        message = bytes_at(messages_at + index * MESSAGE_BYTES, MESSAGE_BYTES)
        length = _receive(table, at, message)
        if length < 0:
            return index if index > 0 else length
        put_i32(message, MESSAGE_LENGTH, length)
    return count


@kernel
def recvmsg(table_at: int, descriptor: int, message_at: int, flags: int) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    at = _usual_socket(table, descriptor)
    if at == 0:
        return UNUSUAL
    return _receive(table, at, bytes_at(message_at, MESSAGE_LENGTH))


@kernel
def _receive(table: Any, at: int, message: Any) -> int:
    """Receive the oldest datagram. Returns the number of bytes copied, or -EAGAIN."""
    ring = bytes_at(get_i64(table, at + _WORD * SOCKET_RING), _RING_STATE_BYTES)
    ring_bytes = get_i64(table, at + _WORD * SOCKET_RING_BYTES)
    memory = bytes_at(get_i64(table, at + _WORD * SOCKET_MEMORY), ring_bytes)
    head, tail = get_i64(ring, _HEAD), get_i64(ring, _TAIL)
    if head < tail and get_i32(memory, head % ring_bytes + LENGTH) == FILLER:
        head += get_i32(memory, head % ring_bytes)
        put_i64(ring, _HEAD, head)
    if head >= tail:
        return -_EAGAIN
    record = head % ring_bytes
    length = get_i32(memory, record + LENGTH)
    vector = bytes_at(get_i64(message, VECTOR), VECTOR_BYTES)
    room = get_i64(vector, VECTOR_LENGTH)
    copied = int(min(room, length))
    copy(bytes_at(get_i64(vector, 0), copied), 0, memory, record + HEADER_LENGTH, copied)
    name_at = get_i64(message, NAME)
    if name_at != 0:
        name_length = get_i32(memory, record + SOURCE_LENGTH)
        shown = min(name_length, get_i32(message, NAME_LENGTH))
        copy(bytes_at(name_at, shown), 0, memory, record + SOURCE, shown)
        put_i32(message, NAME_LENGTH, name_length)
    put_i64(message, CONTROL_LENGTH, 0)
    put_i32(message, FLAGS, _TRUNCATED if length > room else 0)
    put_i64(ring, _HEAD, head + get_i32(memory, record))
    return copied


@kernel
def sendmmsg(table_at: int, descriptor: int, messages_at: int, count: int, flags: int) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    at = _usual_socket(table, descriptor)
    if at == 0:
        return UNUSUAL
    for index in range(count):
        if not _has_usual_name(bytes_at(messages_at + index * MESSAGE_BYTES, MESSAGE_BYTES)):
            return UNUSUAL
    for index in range(count):
        message = bytes_at(messages_at + index * MESSAGE_BYTES, MESSAGE_BYTES)
        length = _send_message(table, at, message)
        if length < 0:
            return index if index > 0 else length
        put_i32(message, MESSAGE_LENGTH, length)
    return count


@kernel
def sendmsg(table_at: int, descriptor: int, message_at: int, flags: int) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    at = _usual_socket(table, descriptor)
    message = bytes_at(message_at, MESSAGE_LENGTH)
    if at == 0 or not _has_usual_name(message):
        return UNUSUAL
    return _send_message(table, at, message)


@kernel
def send(table_at: int, descriptor: int, bytes_from: int, length: int, flags: int) -> int:
    table = bytes_at(table_at, _WORD * WORDS)
    at = _usual_socket(table, descriptor)
    if at == 0:
        return UNUSUAL
    length = min(length, DATAGRAM_BYTES_MAX)
    ring_bytes = get_i64(table, at + _WORD * SOCKET_RING_BYTES)
    memory = bytes_at(get_i64(table, at + _WORD * SOCKET_MEMORY) + ring_bytes, ring_bytes)
    record = _claim(table, at, memory, bytes_at(bytes_from, 0), length)
    if record < 0:
        return record
    copy(memory, record + HEADER_LENGTH, bytes_at(bytes_from, length), 0, length)
    return length


@kernel
def _has_usual_name(message: Any) -> bool:
    """Return whether a message is for the connected peer, or for an IPv4 address."""
    at, length = get_i64(message, NAME), get_i32(message, NAME_LENGTH)
    if at == 0 or length == 0:
        return True
    return bool(length >= V4_LENGTH and get_u16(bytes_at(at, V4_LENGTH), 0) == _INET)


@kernel
def _send_message(table: Any, at: int, message: Any) -> int:
    """Send one message. Returns its length, or -EAGAIN if the ring is full or it has no
    destination.
    """
    vectors_at, count = get_i64(message, VECTOR), get_i64(message, VECTOR_COUNT)
    length = 0
    for index in range(count):
        vector = bytes_at(vectors_at + index * VECTOR_BYTES, VECTOR_BYTES)
        length += min(get_i64(vector, VECTOR_LENGTH), DATAGRAM_BYTES_MAX - length)
    name_at = get_i64(message, NAME)
    has_name = name_at != 0 and get_i32(message, NAME_LENGTH) != 0
    ring_bytes = get_i64(table, at + _WORD * SOCKET_RING_BYTES)
    memory = bytes_at(get_i64(table, at + _WORD * SOCKET_MEMORY) + ring_bytes, ring_bytes)
    record = _claim(table, at, memory, bytes_at(name_at, V4_LENGTH if has_name else 0), length)
    if record < 0:
        return record
    done = 0
    for index in range(count):
        vector = bytes_at(vectors_at + index * VECTOR_BYTES, VECTOR_BYTES)
        size = min(get_i64(vector, VECTOR_LENGTH), length - done)
        copy(memory, record + HEADER_LENGTH + done, bytes_at(get_i64(vector, 0), size), 0, size)
        done += size
    return length


@kernel
def _claim(table: Any, at: int, memory: Any, name: Any, length: int) -> int:
    """Claim space for a datagram in the outbound ring, and write its addresses.

    `memory` is that of the ring, and `name` is the IPv4 address of the destination, or empty for
    the connected peer.
    Returns: the record's offset in the ring's memory, or -EAGAIN
    """
    mailbox = bytes_at(get_i64(table, at + _WORD * SOCKET_MAILBOX), _MAILBOX_BYTES)
    ring_at = get_i64(table, at + _WORD * SOCKET_RING)
    ring = bytes_at(ring_at + _RING_STATE_BYTES, _RING_STATE_BYTES)
    peer_length = get_i64(mailbox, _PEER_LENGTH)
    if name.size == 0 and peer_length == 0:
        return -_EAGAIN
    needed, tail = align(HEADER_LENGTH + length, 8), get_i64(ring, _TAIL)
    if tail == get_i64(ring, _HEAD):
        tail = 0
        put_i64(ring, _HEAD, 0)
        put_i64(ring, _TAIL, 0)
    free = memory.size - (tail - get_i64(ring, _HEAD))
    record = int(tail % memory.size)
    to_end = memory.size - record
    if needed <= to_end:
        to_end = 0
    if needed + to_end > free:
        return -_EAGAIN
    if to_end > 0:
        put_i32(memory, record, to_end)
        put_i32(memory, record + LENGTH, FILLER)
        record = 0
    put_i64(ring, _TAIL, tail + to_end + needed)
    put_i32(memory, record, needed)
    put_i32(memory, record + LENGTH, length)
    local_length = get_i64(mailbox, _LOCAL_LENGTH)
    copy(memory, record + SOURCE, mailbox, _LOCAL, local_length)
    put_i32(memory, record + SOURCE_LENGTH, local_length)
    if name.size == 0:
        copy(memory, record + DESTINATION, mailbox, _PEER, peer_length)
        put_i32(memory, record + DESTINATION_LENGTH, peer_length)
    else:
        # The rest of the structure is padding.
        zero(memory, record + DESTINATION, V4_LENGTH)
        copy(memory, record + DESTINATION, name, 0, V4_ADDRESS + 4)
        put_i32(memory, record + DESTINATION_LENGTH, V4_LENGTH)
    return record
