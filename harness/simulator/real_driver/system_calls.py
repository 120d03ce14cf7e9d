"""C functions that replace the system calls of the real C driver by those of a simulated machine.

    library --slot--> function here --> SimulatedMachine: clock, randomness, sockets of the world

The functions are installed once per process. The last item of `calls` is the running world's
machine. Structures are those of Linux on x86-64. Source: Linux recvmmsg(2), epoll_wait(2),
getifaddrs(3).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import traceback
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_double, c_int, c_int32, c_long, c_size_t, c_ssize_t, c_void_p
from ctypes import c_uint32 as c_socklen
from typing import Any

from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.simulator.real_driver import fast_calls
from windtunnel.harness.simulator.real_driver.fast_calls_kernels import (
    CONTROL_LENGTH,
    FLAGS,
    MESSAGE_BYTES,
    MESSAGE_LENGTH,
    NAME,
    NAME_LENGTH,
    REALTIME,
    REALTIME_COARSE,
    VECTOR,
    VECTOR_BYTES,
    VECTOR_COUNT,
    VECTOR_LENGTH,
)
from windtunnel.harness.simulator.real_driver.memory_sockets import decode_address
from windtunnel.harness.simulator.real_driver.simulated_machine import calls

_NS_PER_SECOND = 1_000_000_000
_IP_ADD_MEMBERSHIP = 35
_EPOLL_EVENT_BYTES = 12
_EAI_NONAME = -2
HARNESS = 3
"""Exit code of the process if the simulator has a defect."""

_libc = ctypes.CDLL(None, use_errno=True)


def _read_u64(at: int) -> int:
    return int(ctypes.c_uint64.from_address(at).value)


def _result(status: int) -> int:
    """Convert a status to the result of a C function, and set errno if the status is an error."""
    if status >= 0:
        return status
    ctypes.set_errno(-status)
    return -1


def _address(at: int, length: int) -> SocketAddress | None:
    return decode_address(ctypes.string_at(at, length)) if at and length else None


def _clock_gettime(which: int, timespec: int) -> int:
    machine = calls[-1]
    is_epoch = which in (REALTIME, REALTIME_COARSE)
    now_ns = machine.epoch_ns() if is_epoch else machine.now_ns()
    ctypes.memmove(timespec, struct.pack("<qq", *divmod(now_ns, _NS_PER_SECOND)), 16)
    return 0


def _gather(vectors: int, count: int) -> int:
    """Copy the buffers of an outgoing message to one contiguous buffer. Returns the number of
    bytes.
    """
    buffer = calls[-1].sockets.buffer
    length = 0
    for vector in range(vectors, vectors + count * VECTOR_BYTES, VECTOR_BYTES):
        at, size = _read_u64(vector), _read_u64(vector + VECTOR_LENGTH)
        size = min(size, buffer.size - length)
        ctypes.memmove(buffer.ctypes.data + length, at, size)
        length += size
    return length


def _transfer_each(
    transfer: Callable[[int, int], int], descriptor: int, messages: int, count: int
) -> int:
    """Send or receive an array of messages, up to the first that fails. Returns the number of
    messages transferred, or -1 with `errno` set if the first one failed.
    """
    for index in range(count):
        message = messages + MESSAGE_BYTES * index
        length = transfer(descriptor, message)
        if length < 0:
            return index or _result(length)
        ctypes.c_uint32.from_address(message + MESSAGE_LENGTH).value = length
    return count


def _send_message(descriptor: int, message: int) -> int:
    name_length = ctypes.c_uint32.from_address(message + NAME_LENGTH).value
    peer = _address(_read_u64(message + NAME), name_length)
    length = _gather(_read_u64(message + VECTOR), _read_u64(message + VECTOR_COUNT))
    return calls[-1].sockets.send(descriptor, peer, length)


def _sendmsg(descriptor: int, message: int, flags: int) -> int:
    return _result(_send_message(descriptor, message))


def _sendmmsg(descriptor: int, messages: int, count: int, flags: int) -> int:
    return _transfer_each(_send_message, descriptor, messages, count)


def _send(descriptor: int, at: int, length: int, flags: int) -> int:
    sockets = calls[-1].sockets
    length = min(length, sockets.buffer.size)
    ctypes.memmove(sockets.buffer.ctypes.data, at, length)
    return _result(sockets.send(descriptor, None, length))


def _receive_message(descriptor: int, message: int) -> int:
    sockets = calls[-1].sockets
    length, source = sockets.receive(descriptor)
    if length < 0:
        return length
    vector = _read_u64(message + VECTOR)
    room = _read_u64(vector + VECTOR_LENGTH)
    ctypes.memmove(_read_u64(vector), sockets.buffer.ctypes.data, min(room, length))
    name, name_length = _read_u64(message + NAME), c_socklen.from_address(message + NAME_LENGTH)
    if name:
        ctypes.memmove(name, source, min(len(source), name_length.value))
        name_length.value = len(source)
    ctypes.c_uint64.from_address(message + CONTROL_LENGTH).value = 0
    ctypes.c_int32.from_address(message + FLAGS).value = (
        int(socket.MSG_TRUNC) if length > room else 0
    )
    return min(length, room)


def _recvmsg(descriptor: int, message: int, flags: int) -> int:
    return _result(_receive_message(descriptor, message))


def _recvmmsg(descriptor: int, messages: int, count: int, flags: int, timeout: int) -> int:
    if not calls[-1].sockets.is_readable(descriptor):
        return _result(-errno.EAGAIN)
    return _transfer_each(_receive_message, descriptor, messages, count)


def _socket(family: int, kind: int, protocol: int) -> int:
    return _result(calls[-1].open(family))


def _close(descriptor: int) -> int:
    if calls and calls[-1].close(descriptor):
        return 0
    return int(_libc.close(descriptor))


def _bind(descriptor: int, at: int, length: int) -> int:
    address = _address(at, length)
    if address is None:
        return _result(-errno.EAFNOSUPPORT)
    return _result(calls[-1].sockets.bind(descriptor, address))


def _connect(descriptor: int, at: int, length: int) -> int:
    return _result(calls[-1].sockets.connect(descriptor, _address(at, length)))


def _getsockname(descriptor: int, at: int, length_at: int) -> int:
    length = c_socklen.from_address(length_at)
    name = calls[-1].sockets.local(descriptor).encode()[:16]
    ctypes.memmove(at, name, min(len(name), length.value))
    length.value = len(name)
    return 0


def _setsockopt(descriptor: int, level: int, name: int, at: int, length: int) -> int:
    sockets = calls[-1].sockets
    value = ctypes.string_at(at, length)
    if level == socket.IPPROTO_IP and name == _IP_ADD_MEMBERSHIP:
        return _result(sockets.join(descriptor, socket.inet_ntoa(value[:4])))
    return _result(sockets.set_option(descriptor, level, name, int.from_bytes(value, "little")))


def _getsockopt(descriptor: int, level: int, name: int, at: int, length_at: int) -> int:
    c_int.from_address(at).value = calls[-1].sockets.option(descriptor, level, name)
    c_socklen.from_address(length_at).value = 4
    return 0


def _fcntl(descriptor: int, command: int, argument: int) -> int:
    if calls and calls[-1].sockets.has(descriptor):
        return 0
    found = int(_libc.fcntl(descriptor, command, c_long(argument)))
    return found if found >= 0 else _result(-ctypes.get_errno())


def _epoll_create1(flags: int) -> int:
    return calls[-1].make_poll()


def _epoll_ctl(poll: int, operation: int, descriptor: int, event: int) -> int:
    data = ctypes.string_at(event, _EPOLL_EVENT_BYTES) if event else b""
    return calls[-1].change_poll(poll, operation, descriptor, data)


def _epoll_wait(poll: int, events: int, limit: int, timeout: int) -> int:
    found = calls[-1].readable(poll, limit)
    ctypes.memmove(events, b"".join(found), _EPOLL_EVENT_BYTES * len(found))
    return len(found)


def _poll(polled: int, count: int, timeout: int) -> int:
    return 0


def _getaddrinfo(node: int, service: int, hints: int, found: int) -> int:
    name = ctypes.string_at(node).decode("utf-8", "replace") if node else None
    if name is not None:
        try:
            numeric, _ = calls[-1].resolver.resolve(name, "host")
        except UnknownHostError:
            return _EAI_NONAME
        name = numeric
    _libc.getaddrinfo.argtypes = [ctypes.c_char_p, c_void_p, c_void_p, c_void_p]
    return int(_libc.getaddrinfo(name.encode() if name else None, service, hints, found))


_interfaces: list[object] = []
"""The memory of the last list of interfaces."""


def _getifaddrs(found: int) -> int:
    """Write a list of two `struct ifaddrs`: loopback and the host's interface."""
    up, broadcast, loopback, running, multicast = 1, 2, 8, 64, 4096
    _interfaces.clear()
    following = 0
    for each in reversed(calls[-1].resolver.interfaces()):
        flags = up | running | (loopback if each.is_loopback else broadcast | multicast)
        mask = "255.0.0.0" if each.is_loopback else "255.255.255.0"
        parts = [each.name.encode() + b"\0"]
        parts += [SocketAddress(text, 0).encode()[:16] for text in (each.host, mask)]
        name, address, netmask = (ctypes.create_string_buffer(part, 32) for part in parts)
        where = [ctypes.addressof(part) for part in (name, address, netmask)]
        record = struct.pack("<QQQQQQQ", following, where[0], flags, where[1], where[2], 0, 0)
        kept = ctypes.create_string_buffer(record, len(record))
        _interfaces.extend((name, address, netmask, kept))
        following = ctypes.addressof(kept)
    ctypes.c_uint64.from_address(found).value = following
    return 0


def _freeifaddrs(list_at: int) -> None:
    """Do nothing, because `_getifaddrs` frees the previous list."""


def _if_nametoindex(name: int) -> int:
    wanted = ctypes.string_at(name).decode("ascii", "replace")
    found = [each.index for each in calls[-1].resolver.interfaces() if each.name == wanted]
    return found[0] if found else 0


def _randomised_int32() -> int:
    return calls[-1].random.getrandbits(32) - (1 << 31)


def _drand48() -> float:
    return calls[-1].random.random()


def _erand48(state: int) -> float:
    return calls[-1].random.random()


def _srand48(seed: int) -> None:
    """Do nothing, because random numbers are derived from the run's seed."""


def _usleep(duration_us: int) -> int:
    return 0


def _nanosleep(duration: int, rest: int) -> int:
    return 0


def _function(function: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    """Return a ctypes function that calls a Python function. An exception in the Python function
    ends the process, because C code cannot propagate the exception.
    """

    def call(*values: Any) -> Any:
        try:
            if calls:
                calls[-1].count_call()
            if None in values:
                values = tuple(0 if each is None else each for each in values)
            return function(*values)
        except BaseException:
            print(traceback.format_exc(), flush=True)
            os._exit(HARNESS)

    return CFUNCTYPE(result, *arguments, use_errno=True)(call)


_P = c_void_p
FUNCTIONS: dict[str, Any] = {
    "clock_gettime": (_clock_gettime, c_int, c_int, _P),
    "aeron_randomised_int32": (_randomised_int32, c_int32),
    "drand48": (_drand48, c_double),
    "erand48": (_erand48, c_double, _P),
    "srand48": (_srand48, None, c_long),
    "usleep": (_usleep, c_int, c_int),
    "nanosleep": (_nanosleep, c_int, _P, _P),
    "socket": (_socket, c_int, c_int, c_int, c_int),
    "close": (_close, c_int, c_int),
    "bind": (_bind, c_int, c_int, _P, c_socklen),
    "connect": (_connect, c_int, c_int, _P, c_socklen),
    "getsockname": (_getsockname, c_int, c_int, _P, _P),
    "setsockopt": (_setsockopt, c_int, c_int, c_int, c_int, _P, c_socklen),
    "getsockopt": (_getsockopt, c_int, c_int, c_int, c_int, _P, _P),
    "fcntl64": (_fcntl, c_int, c_int, c_int, c_long),
    "sendmsg": (_sendmsg, c_ssize_t, c_int, _P, c_int),
    "sendmmsg": (_sendmmsg, c_int, c_int, _P, ctypes.c_uint, c_int),
    "send": (_send, c_ssize_t, c_int, _P, c_size_t, c_int),
    "recvmsg": (_recvmsg, c_ssize_t, c_int, _P, c_int),
    "recvmmsg": (_recvmmsg, c_int, c_int, _P, ctypes.c_uint, c_int, _P),
    "epoll_create1": (_epoll_create1, c_int, c_int),
    "epoll_ctl": (_epoll_ctl, c_int, c_int, c_int, c_int, _P),
    "epoll_wait": (_epoll_wait, c_int, c_int, _P, c_int, c_int),
    "poll": (_poll, c_int, _P, ctypes.c_ulong, c_int),
    "getaddrinfo": (_getaddrinfo, c_int, _P, _P, _P, _P),
    "if_nametoindex": (_if_nametoindex, ctypes.c_uint, _P),
}
"""The functions to replace: name -> function, type of its result, types of its arguments."""


_slow: list[Any] = []
"""The functions that machine code calls in unusual cases."""


def make_functions() -> dict[str, Any]:
    """Return the ctypes functions that replace the library's calls, by the name of the replaced
    function.
    """
    made = {name: _function(*signature) for name, signature in FUNCTIONS.items()}
    fast = fast_calls.make(made)
    _slow.extend(made[name] for name in fast)
    return {**made, **fast}


def make_interface_functions() -> tuple[Any, Any]:
    """Return the ctypes functions that replace getifaddrs and freeifaddrs."""
    return _function(_getifaddrs, c_int, _P), _function(_freeifaddrs, None, _P)
