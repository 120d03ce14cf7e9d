"""System calls for compiled kernels: clocks, sleep, poll, and datagrams in batches.

Compiled kernels call libc by symbol name, so they can be cached on disk. A call that
fails returns the negative errno, never -1. Pointers are passed as absolute addresses (see
`atomics.address_of`), and the caller keeps the memory alive. If the JIT is disabled, the same
functions are called through ctypes.
"""

import ctypes
import os
import time

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from windtunnel.driver.kernels.jit import JIT_DISABLED, kernel

CLOCK_REALTIME = 0
CLOCK_MONOTONIC = 1
MSG_DONTWAIT = 0x40

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000


def _declare(builder, name, result, arguments):
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _as_integers(context, builder, signature, args, widths):
    wide = (
        context.cast(builder, arg, kind, types.int64)
        for arg, kind in zip(args, signature.args, strict=True)
    )
    return [
        value if width == 64 else builder.trunc(value, ir.IntType(width))
        for value, width in zip(wide, widths, strict=True)
    ]


def _errno_on_failure(builder, result):
    """Convert a result of -1 from libc to the negative errno, which is read from thread-local
    storage.
    """
    wide = builder.sext(result, ir.IntType(64)) if result.type.width < 64 else result
    location = _declare(builder, "__errno_location", ir.IntType(32).as_pointer(), [])
    code = builder.load(builder.call(location, []))
    negative = builder.neg(builder.sext(code, ir.IntType(64)))
    return builder.select(builder.icmp_signed("<", wide, wide.type(0)), negative, wide)


def _make_call(name, widths, result_width):
    """Return a code generator that calls the libc function `name` with integers of the given
    widths.
    """

    def codegen(context, builder, signature, args):
        values = _as_integers(context, builder, signature, args, widths)
        function = _declare(
            builder, name, ir.IntType(result_width), [ir.IntType(width) for width in widths]
        )
        return _errno_on_failure(builder, builder.call(function, values))

    return codegen


_send_code = _make_call("send", (32, 64, 64, 32), 64)
_sendto_code = _make_call("sendto", (32, 64, 64, 32, 64, 32), 64)
_sendmmsg_code = _make_call("sendmmsg", (32, 64, 32, 32), 32)
_recvmmsg_code = _make_call("recvmmsg", (32, 64, 32, 32, 64), 32)
_poll_code = _make_call("poll", (64, 64, 32), 32)


@intrinsic
def _send(typingctx, fd, address, length, flags):
    return types.int64(fd, address, length, flags), _send_code


@intrinsic
def _sendto(typingctx, fd, address, length, flags, name_address, name_length):
    return types.int64(fd, address, length, flags, name_address, name_length), _sendto_code


@intrinsic
def _sendmmsg(typingctx, fd, address, count, flags):
    return types.int64(fd, address, count, flags), _sendmmsg_code


@intrinsic
def _recvmmsg(typingctx, fd, address, count, flags, timeout_address):
    return types.int64(fd, address, count, flags, timeout_address), _recvmmsg_code


@intrinsic
def _poll(typingctx, address, count, timeout_ms):
    return types.int64(address, count, timeout_ms), _poll_code


@intrinsic
def _clock_ns(typingctx, clock_id):
    def codegen(context, builder, signature, args):
        (clock,) = _as_integers(context, builder, signature, args, (32,))
        i64 = ir.IntType(64)
        timespec = cgutils.alloca_once(builder, ir.ArrayType(i64, 2))
        pointer = builder.bitcast(timespec, i64.as_pointer())
        function = _declare(
            builder, "clock_gettime", ir.IntType(32), [ir.IntType(32), i64.as_pointer()]
        )
        builder.call(function, [clock, pointer])
        seconds = builder.load(pointer)
        nanos = builder.load(builder.gep(pointer, [ir.IntType(32)(1)]))
        return builder.add(builder.mul(seconds, i64(NS_PER_SECOND)), nanos)

    return types.int64(clock_id), codegen


@intrinsic
def _sleep_ns(typingctx, duration_ns):
    def codegen(context, builder, signature, args):
        (duration,) = _as_integers(context, builder, signature, args, (64,))
        i64 = ir.IntType(64)
        timespec = cgutils.alloca_once(builder, ir.ArrayType(i64, 2))
        pointer = builder.bitcast(timespec, i64.as_pointer())
        second = i64(NS_PER_SECOND)
        builder.store(builder.sdiv(duration, second), pointer)
        nanos = builder.srem(duration, second)
        builder.store(nanos, builder.gep(pointer, [ir.IntType(32)(1)]))
        arguments = [i64.as_pointer(), i64]
        function = _declare(builder, "nanosleep", ir.IntType(32), arguments)
        builder.call(function, [pointer, i64(0)])
        return context.get_dummy_value()

    return types.void(duration_ns), codegen


@intrinsic
def _sched_yield(typingctx):
    def codegen(context, builder, signature, args):
        builder.call(_declare(builder, "sched_yield", ir.IntType(32), []), [])
        return context.get_dummy_value()

    return types.void(), codegen


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
    _clock_ns, _sched_yield = time.clock_gettime_ns, os.sched_yield

    def _sleep_ns(duration_ns):
        time.sleep(duration_ns / NS_PER_SECOND)


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
def monotonic_ns():
    return _clock_ns(CLOCK_MONOTONIC)


@kernel
def epoch_ns():
    return _clock_ns(CLOCK_REALTIME)


@kernel
def sleep_ns(duration_ns):
    """Sleep for about `duration_ns`, plus the timer slack of the thread."""
    _sleep_ns(duration_ns)


@kernel
def yield_cpu():
    _sched_yield()
