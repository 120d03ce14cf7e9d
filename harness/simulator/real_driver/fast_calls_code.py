"""LLVM code of the functions that `fast_calls` installs.

    int clock_gettime(int which, struct timespec *time)
    int recvmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags, timespec *)

This module is imported only to compile them, because it imports llvmlite.
"""

import errno
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from windtunnel.harness.simulator.real_driver.fast_calls_table import (
    CALLS,
    CALLS_MAX,
    EPOCH_NS,
    FIRST_DESCRIPTOR,
    FUNCTIONS,
    NOW_AT,
    RINGS,
    RINGS_MAX,
    SLOW,
    TABLE,
)

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_NS_PER_SECOND = 1_000_000_000
_REALTIME, _REALTIME_COARSE = 0, 5


def object_code(name: str) -> bytes:
    """Return the function `fast_<name>` as an ELF object file."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    write = {"clock_gettime": _clock_gettime, "recvmmsg": _recvmmsg}[name]
    module = llvm.parse_assembly(str(write()))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="static", codemodel="jitdefault", jit=True
    )
    found: bytes = machine.emit_object(module)
    return found


class _Function:
    """A function with its entry block, and a block that calls the function in Python."""

    def __init__(self, name: str, arguments: list[Any]) -> None:
        self.module = ir.Module(name)
        kind = ir.FunctionType(_I32, arguments)
        self.function = ir.Function(self.module, kind, f"fast_{name}")
        self.table = ir.GlobalVariable(self.module, ir.IntType(8), TABLE)
        self.entry, self.slow = self.block("entry"), self.block("slow")
        address = self.load(self.slow, SLOW + FUNCTIONS.index(name))
        python = self.slow.inttoptr(address, kind.as_pointer())
        self.slow.ret(self.slow.call(python, list(self.function.args)))

    def block(self, name: str) -> Any:
        return ir.IRBuilder(self.function.append_basic_block(name))

    def at(self, builder: Any, word: Any) -> Any:
        """Return a pointer to a word of the table."""
        base = builder.ptrtoint(self.table, _I64)
        index = _I64(word) if isinstance(word, int) else word
        address = builder.add(base, builder.mul(index, _I64(8)))
        return builder.inttoptr(address, _I64.as_pointer())

    def load(self, builder: Any, word: Any) -> Any:
        return builder.load(self.at(builder, word))

    def count_call(self, builder: Any) -> Any:
        """Count a call. Returns whether the limit between checks is not reached."""
        calls = builder.add(self.load(builder, CALLS), _I64(1))
        builder.store(calls, self.at(builder, CALLS))
        return builder.icmp_signed("<", calls, _I64(CALLS_MAX))


def _clock_gettime() -> ir.Module:
    made = _Function("clock_gettime", [_I32, _I64])
    which, time = made.function.args
    entry, fast = made.entry, made.block("fast")
    now_at = made.load(entry, NOW_AT)
    is_open = entry.icmp_signed("!=", now_at, _I64(0))
    entry.cbranch(entry.and_(made.count_call(entry), is_open), fast.block, made.slow.block)
    is_epoch = fast.or_(
        fast.icmp_signed("==", which, _I32(_REALTIME)),
        fast.icmp_signed("==", which, _I32(_REALTIME_COARSE)),
    )
    epoch = fast.select(is_epoch, made.load(fast, EPOCH_NS), _I64(0))
    now = fast.add(epoch, fast.load(fast.inttoptr(now_at, _I64.as_pointer())))
    seconds = fast.udiv(now, _I64(_NS_PER_SECOND))
    rest = fast.urem(now, _I64(_NS_PER_SECOND))
    fast.store(seconds, fast.inttoptr(time, _I64.as_pointer()))
    fast.store(rest, fast.inttoptr(fast.add(time, _I64(8)), _I64.as_pointer()))
    fast.ret(_I32(0))
    return made.module


def _recvmmsg() -> ir.Module:
    """Return that no datagram is available if the socket's ring is empty."""
    made = _Function("recvmmsg", [_I32, _I64, _I32, _I32, _I64])
    entry, known, look, empty = made.entry, *(made.block(f"step{step}") for step in range(3))
    index = entry.sub(entry.sext(made.function.args[0], _I64), _I64(FIRST_DESCRIPTOR))
    is_known = entry.icmp_unsigned("<", index, _I64(RINGS_MAX))
    entry.cbranch(entry.and_(made.count_call(entry), is_known), known.block, made.slow.block)
    ring = made.load(known, known.add(index, _I64(RINGS)))
    known.cbranch(known.icmp_signed("!=", ring, _I64(0)), look.block, made.slow.block)
    head = look.load(look.inttoptr(ring, _I64.as_pointer()))
    tail = look.load(look.inttoptr(look.add(ring, _I64(8)), _I64.as_pointer()))
    look.cbranch(look.icmp_signed("==", head, tail), empty.block, made.slow.block)
    errno_location = ir.Function(
        made.module, ir.FunctionType(_I32.as_pointer(), []), "__errno_location"
    )
    empty.store(_I32(errno.EAGAIN), empty.call(errno_location, []))
    empty.ret(_I32(-1))
    return made.module
