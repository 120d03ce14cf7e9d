"""The system calls that the relay's compiled code uses: datagrams, polling, and the clock.

Compiled kernels call libc by symbol name, so they can be cached on disk. Pointers are passed as
integers, and the caller keeps the memory alive. A call that fails returns the negative errno.
Without the JIT the same names are bound through ctypes.
"""

import ctypes
from typing import Any

import numba
import numpy as np
from numba.core import types

from windtunnel.driver.kernels.jit import allocating_kernel

MSG_DONTWAIT = 0x40
MSG_TRUNC = 0x20
CLOCK_REALTIME = 0
POLLIN = 0x001
POLLOUT = 0x004

EINTR = 4
EAGAIN = 11
ENOBUFS = 105

NS_PER_SECOND = 1_000_000_000

IOVEC = np.dtype([("base", "<u8"), ("length", "<u8")])
MMSGHDR = np.dtype(
    [
        ("name", "<u8"),
        ("name_length", "<u8"),
        ("iov", "<u8"),
        ("iov_length", "<u8"),
        ("control", "<u8"),
        ("control_length", "<u8"),
        ("flags", "<i4"),
        ("flags_padding", "<i4"),
        ("length", "<u4"),  # length of the datagram received or sent
        ("length_padding", "<u4"),
    ]
)
"""The C structure `struct mmsghdr` on 64-bit Linux."""
POLLFD = np.dtype([("fd", "<i4"), ("events", "<i2"), ("revents", "<i2")])

assert MMSGHDR.itemsize == 64
assert POLLFD.itemsize == 8

_I32, _ADDRESS = types.int32, types.intp
_recvmmsg: Any
_sendmmsg: Any
_ppoll: Any
_clock_gettime: Any

if getattr(numba.config, "DISABLE_JIT"):  # noqa: B009  # numba makes its settings at run time
    _INT, _POINTER = ctypes.c_int, ctypes.c_void_p
    _LIBC = ctypes.CDLL(None, use_errno=True)
    _recvmmsg, _sendmmsg = _LIBC.recvmmsg, _LIBC.sendmmsg
    _ppoll, _clock_gettime = _LIBC.ppoll, _LIBC.clock_gettime
    _recvmmsg.argtypes = [_INT, _POINTER, ctypes.c_uint, _INT, _POINTER]
    _sendmmsg.argtypes = [_INT, _POINTER, ctypes.c_uint, _INT]
    _ppoll.argtypes = [_POINTER, ctypes.c_ulong, _POINTER, _POINTER]
    _clock_gettime.argtypes = [_INT, _POINTER]

    def _result(result: int) -> int:
        return -ctypes.get_errno() if result < 0 else int(result)
else:
    _recvmmsg = types.ExternalFunction(
        "recvmmsg", _I32(_I32, _ADDRESS, types.uint32, _I32, _ADDRESS)
    )
    _sendmmsg = types.ExternalFunction("sendmmsg", _I32(_I32, _ADDRESS, types.uint32, _I32))
    _ppoll = types.ExternalFunction("ppoll", _I32(_ADDRESS, types.uint64, _ADDRESS, _ADDRESS))
    _clock_gettime = types.ExternalFunction("clock_gettime", _I32(_I32, _ADDRESS))
    _INT_POINTER: Any = types.CPointer(types.int32)  # type: ignore[no-untyped-call]  # numba's own
    _errno_location: Any = types.ExternalFunction("__errno_location", _INT_POINTER())
    _array_at: Any = getattr(numba, "carray")  # noqa: B009  # numba does not say that it exports it

    @allocating_kernel
    def _result(result: int) -> int:
        if result < 0:
            return -int(_array_at(_errno_location(), 1)[0])
        return int(result)


@allocating_kernel
def receive_batch(fd: int, headers_address: int, count: int) -> int:
    """Receive up to `count` datagrams without blocking. Returns the number or a negative errno."""
    return _result(_recvmmsg(fd, headers_address, count, MSG_DONTWAIT, 0))


@allocating_kernel
def send_batch(fd: int, headers_address: int, count: int) -> int:
    """Send up to `count` datagrams without blocking. Returns the number or a negative errno."""
    return _result(_sendmmsg(fd, headers_address, count, MSG_DONTWAIT))


@allocating_kernel
def wait_for(pollfds_address: int, count: int, timespec: Any, timeout_ns: int) -> int:
    """Sleep until a socket is ready, a signal arrives, or the timeout expires.

    Shapes:  timespec int64[2], scratch
    Returns: the number of ready sockets, 0 on a timeout, or a negative errno
    """
    timespec[0] = timeout_ns // NS_PER_SECOND
    timespec[1] = timeout_ns % NS_PER_SECOND
    return _result(_ppoll(pollfds_address, count, timespec.ctypes.data, 0))


@allocating_kernel
def realtime_ns(timespec: Any) -> int:
    """Return the wall-clock time in nanoseconds, using `timespec` as scratch space."""
    _clock_gettime(CLOCK_REALTIME, timespec.ctypes.data)
    return int(timespec[0]) * NS_PER_SECOND + int(timespec[1])
