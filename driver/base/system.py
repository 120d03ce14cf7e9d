"""System calls for compiled kernels: clocks, sleep, poll, and datagrams in batches.

Compiled kernels call libc by symbol name, so they can be cached on disk. A call that
fails returns the negative errno, never -1. Pointers are passed as absolute addresses (see
`atomics.address_of`), and the caller keeps the memory alive. If the JIT is disabled, the same
functions are called through ctypes.
"""

import ctypes
import os
import select
import time
from typing import Any

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred, kernel

CLOCK_REALTIME = 0
CLOCK_MONOTONIC = 1
MSG_DONTWAIT = 0x40

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000


def _ctypes_call(name, arguments, result):
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.argtypes, function.restype = arguments, result

    def call(*values):
        outcome = function(*(int(value) for value in values))
        return -ctypes.get_errno() if outcome < 0 else outcome

    return call


if JIT_DISABLED:
    _int, _long, _address = ctypes.c_int, ctypes.c_ssize_t, ctypes.c_void_p
    _send = _ctypes_call("send", [_int, _address, _long, _int], _long)
    _sendto = _ctypes_call("sendto", [_int, _address, _long, _int, _address, _int], _long)
    _sendmmsg = _ctypes_call("sendmmsg", [_int, _address, _int, _int], _int)
    _recvmmsg = _ctypes_call("recvmmsg", [_int, _address, _int, _int, _address], _int)
    _poll = _ctypes_call("poll", [_address, _long, _int], _int)
    _epoll_ctl = _ctypes_call("epoll_ctl", [_int, _int, _int, _address], _int)
    _epoll_wait = _ctypes_call("epoll_wait", [_int, _address, _int, _int], _int)
    _clock_ns, _sched_yield = time.clock_gettime_ns, os.sched_yield

    def _sleep_ns(duration_ns):
        time.sleep(duration_ns / NS_PER_SECOND)

    def _wait_readable(fd, timeout_ns):
        return len(select.select([fd], [], [], timeout_ns / NS_PER_SECOND)[0])

else:

    def _compiled(name: str) -> Any:
        """Return a numba intrinsic, created on first use, for a function in `llvm_system`."""

        def make() -> Any:
            from windtunnel.driver.base import llvm_system

            return getattr(llvm_system, name)

        return Deferred(make)

    _send, _sendto, _sendmmsg = (_compiled(name) for name in ("send", "sendto", "sendmmsg"))
    _recvmmsg, _poll = _compiled("recvmmsg"), _compiled("poll")
    _epoll_ctl, _epoll_wait = _compiled("epoll_ctl"), _compiled("epoll_wait")
    _wait_readable = _compiled("wait_readable")
    _clock_ns, _sched_yield, _sleep_ns = (
        _compiled(name) for name in ("clock_ns", "sched_yield", "sleep_ns")
    )


@kernel
def send(fd, address, length, flags):
    """Send one datagram to the connected peer. Returns the number of bytes sent, or -errno."""
    return _send(fd, address, length, flags)


@kernel
def sendto(fd, address, length, flags, name_address, name_length):
    """Send one datagram to a socket address. Returns the number of bytes sent, or -errno."""
    return _sendto(fd, address, length, flags, name_address, name_length)


@kernel
def sendmmsg(fd, address, count, flags):
    """Send an array of `struct mmsghdr`. Returns the number of messages sent, or -errno."""
    return _sendmmsg(fd, address, count, flags)


@kernel
def recvmmsg(fd, address, count, flags):
    """Receive into an array of `struct mmsghdr`. Returns the number of messages received, or
    -errno.
    """
    return _recvmmsg(fd, address, count, flags, 0)


@kernel
def poll(address, count, timeout_ms):
    """Wait on an array of `struct pollfd`. Returns the number of ready descriptors, or -errno."""
    return _poll(address, count, timeout_ms)


@kernel
def epoll_ctl(epoll_fd, operation, fd, event_address):
    """Add a descriptor to an epoll instance, or delete it. Returns 0, or -errno."""
    return _epoll_ctl(epoll_fd, operation, fd, event_address)


@kernel
def epoll_wait(epoll_fd, events_address, count, timeout_ms):
    """Wait on an epoll instance. Returns the number of `struct epoll_event` written, or -errno."""
    return _epoll_wait(epoll_fd, events_address, count, timeout_ms)


@kernel
def monotonic_ns():
    return _clock_ns(CLOCK_MONOTONIC)


@kernel
def epoch_ns():
    return _clock_ns(CLOCK_REALTIME)


@kernel
def sleep_ns(duration_ns):
    """Sleep for about `duration_ns`, plus the thread's timer slack."""
    _sleep_ns(duration_ns)


@kernel
def wait_readable(fd, timeout_ns):
    """Sleep until a descriptor is readable or has an error, but for at most about `timeout_ns`.
    Returns 1, 0 after the timeout, or -errno.
    """
    return _wait_readable(fd, timeout_ns)


@kernel
def yield_cpu():
    _sched_yield()
