"""The system calls that the relay's compiled code uses: datagrams, polling, and the clock.

Compiled kernels call libc by symbol name, so they can be cached on disk. Pointers are passed as
integers, and the caller keeps the memory alive. A call that fails returns the negative errno.
Without the JIT the same names are bound through ctypes.
"""

import ctypes
from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred, kernel

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

_recvmmsg: Any
_sendmmsg: Any
_ppoll: Any
_clock_gettime: Any

if JIT_DISABLED:
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

    def _external(name: str, result: str, *arguments: str) -> Any:
        """Return a libc function for use in kernels. `result` and `arguments` are the names of
        numba types.
        """

        def make() -> Any:
            from numba.core import types

            kinds = vars(types)
            return types.ExternalFunction(name, kinds[result](*(kinds[each] for each in arguments)))

        return Deferred(make)

    def _make_i32_at() -> Any:
        from numba.core import types
        from numba.extending import intrinsic

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_value_type(signature.return_type)
            return builder.load(builder.inttoptr(arguments[0], kind.as_pointer()))

        def i32_at(typing_context: Any, address: Any) -> Any:
            """Return the 32-bit integer at an address."""
            return types.int32(types.intp), generate

        return intrinsic(i32_at)

    _recvmmsg = _external("recvmmsg", "int32", "int32", "intp", "uint32", "int32", "intp")
    _sendmmsg = _external("sendmmsg", "int32", "int32", "intp", "uint32", "int32")
    _ppoll = _external("ppoll", "int32", "intp", "uint64", "intp", "intp")
    _clock_gettime = _external("clock_gettime", "int32", "int32", "intp")
    _errno_location = _external("__errno_location", "intp")
    _i32_at: Any = Deferred(_make_i32_at)

    @kernel
    def _result(result: int) -> int:
        if result < 0:
            return -int(_i32_at(_errno_location()))
        return int(result)


@kernel
def receive_batch(fd: int, headers_address: int, count: int) -> int:
    """Receive up to `count` datagrams without blocking. Returns the number or a negative errno."""
    return _result(_recvmmsg(fd, headers_address, count, MSG_DONTWAIT, 0))


@kernel
def send_batch(fd: int, headers_address: int, count: int) -> int:
    """Send up to `count` datagrams without blocking. Returns the number or a negative errno."""
    return _result(_sendmmsg(fd, headers_address, count, MSG_DONTWAIT))


@kernel
def wait_for(pollfds_address: int, count: int, timespec: Any, timeout_ns: int) -> int:
    """Sleep until a socket is ready, a signal arrives, or the timeout expires.

    Shapes:  timespec int64[2], scratch
    Returns: the number of ready sockets, 0 on a timeout, or a negative errno
    """
    timespec[0] = timeout_ns // NS_PER_SECOND
    timespec[1] = timeout_ns % NS_PER_SECOND
    return _result(_ppoll(pollfds_address, count, timespec.ctypes.data, 0))


@kernel
def realtime_ns(timespec: Any) -> int:
    """Return the wall-clock time in nanoseconds, using `timespec` as scratch space."""
    _clock_gettime(CLOCK_REALTIME, timespec.ctypes.data)
    return int(timespec[0]) * NS_PER_SECOND + int(timespec[1])
