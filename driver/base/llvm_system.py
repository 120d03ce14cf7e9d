"""LLVM code of the system calls in `system`.

This module is imported only to compile a kernel, because it imports numba. Compiled kernels call
libc by symbol name.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

NS_PER_SECOND = 1_000_000_000
_POLLIN = 1


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
    """Generate code that replaces the result -1 of a libc function with the negative errno."""
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
_epoll_ctl_code = _make_call("epoll_ctl", (32, 32, 32, 64), 32)
_epoll_wait_code = _make_call("epoll_wait", (32, 64, 32, 32), 32)


@intrinsic
def send(typingctx, fd, address, length, flags):
    return types.int64(fd, address, length, flags), _send_code


@intrinsic
def sendto(typingctx, fd, address, length, flags, name_address, name_length):
    return types.int64(fd, address, length, flags, name_address, name_length), _sendto_code


@intrinsic
def sendmmsg(typingctx, fd, address, count, flags):
    return types.int64(fd, address, count, flags), _sendmmsg_code


@intrinsic
def recvmmsg(typingctx, fd, address, count, flags, timeout_address):
    return types.int64(fd, address, count, flags, timeout_address), _recvmmsg_code


@intrinsic
def poll(typingctx, address, count, timeout_ms):
    return types.int64(address, count, timeout_ms), _poll_code


@intrinsic
def epoll_ctl(typingctx, epoll_fd, operation, fd, event_address):
    return types.int64(epoll_fd, operation, fd, event_address), _epoll_ctl_code


@intrinsic
def epoll_wait(typingctx, epoll_fd, events_address, count, timeout_ms):
    return types.int64(epoll_fd, events_address, count, timeout_ms), _epoll_wait_code


@intrinsic
def clock_ns(typingctx, clock_id):
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


def _timespec(builder, duration):
    """Store a duration in nanoseconds as a `struct timespec`. Returns its address, an i64*."""
    i64 = ir.IntType(64)
    pointer = builder.bitcast(cgutils.alloca_once(builder, ir.ArrayType(i64, 2)), i64.as_pointer())
    second = i64(NS_PER_SECOND)
    builder.store(builder.sdiv(duration, second), pointer)
    nanos = builder.srem(duration, second)
    builder.store(nanos, builder.gep(pointer, [ir.IntType(32)(1)]))
    return pointer


@intrinsic
def wait_readable(typingctx, fd, timeout_ns):
    def codegen(context, builder, signature, args):
        descriptor, duration = _as_integers(context, builder, signature, args, (64, 64))
        i32, i64 = ir.IntType(32), ir.IntType(64)
        # A struct pollfd: the descriptor (i32), the events that are waited for, those found (i16).
        watched = cgutils.alloca_once(builder, i64)
        low = builder.and_(descriptor, i64(0xFFFF_FFFF))
        builder.store(builder.or_(low, i64(_POLLIN << 32)), watched)
        pointer = _timespec(builder, duration)
        arguments = [i64.as_pointer(), i64, i64.as_pointer(), i64]
        function = _declare(builder, "ppoll", i32, arguments)
        result = builder.call(function, [watched, i64(1), pointer, i64(0)])
        return _errno_on_failure(builder, result)

    return types.int64(fd, timeout_ns), codegen


@intrinsic
def sleep_ns(typingctx, duration_ns):
    def codegen(context, builder, signature, args):
        (duration,) = _as_integers(context, builder, signature, args, (64,))
        i64 = ir.IntType(64)
        pointer = _timespec(builder, duration)
        arguments = [i64.as_pointer(), i64]
        function = _declare(builder, "nanosleep", ir.IntType(32), arguments)
        builder.call(function, [pointer, i64(0)])
        return context.get_dummy_value()

    return types.void(duration_ns), codegen


@intrinsic
def sched_yield(typingctx):
    def codegen(context, builder, signature, args):
        builder.call(_declare(builder, "sched_yield", ir.IntType(32), []), [])
        return context.get_dummy_value()

    return types.void(), codegen
