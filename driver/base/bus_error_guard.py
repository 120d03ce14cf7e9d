"""Survives the loss of mapped pages: a file that was truncated, or a full file system.

Access to a page of a mapped file that lies behind the file's end, or that the file system cannot
allocate, raises SIGBUS. Every client of a driver can truncate the log buffers that they share, so
one client could end the process for all. After `install`, such an access gets a page of zeros that
belongs to this process only, and continues; `Mapping.lost_pages` counts these pages, and the owner
of the mapping ends its stream.

    access --SIGBUS--> handler: is the address in a registered mapping?
                          yes: mmap a zeroed page over it, count it, and repeat the access
                          no:  restore the previous handler, and raise the signal again

The handler is machine code that LLVM makes at installation. A handler in Python would never run,
because Python calls it only after the faulting instruction, and threads without the GIL could not
call it at all. The handler reads the table below and calls mmap, sigaction and raise. It takes no
lock and allocates nothing. Reserving pages with fallocate instead would neither survive a
truncation nor keep logs sparse.
"""

import ctypes
import mmap
import signal
import threading
from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir

from windtunnel.driver.base.atomics import address_of

ROWS = 1 << 15
"""Maximum number of registered mappings. Further ones are not protected."""
BEGIN, END, LOST_PAGES, ROW_WORDS = 0, 1, 2, 3
NOT_REGISTERED = -1

_ADDRESS_OFFSET = 16
"""Offset of `si_addr` in `siginfo_t` on 64-bit Linux."""
_ACTION_LENGTH = 256
"""More than the length of `struct sigaction` in any libc of 64-bit Linux (152 in glibc)."""
_SA_SIGINFO, _SA_RESTART, _SA_ONSTACK = 0x4, 0x1000_0000, 0x0800_0000
_MAP_FIXED = 0x10
_FLAGS_OFFSET = 136
"""Offset of `sa_flags` in glibc's `struct sigaction` on x86-64 and AArch64."""
_I32, _I64 = ir.IntType(32), ir.IntType(64)

_rows = np.zeros((ROWS, ROW_WORDS), dtype=np.int64)
_total = np.zeros(1, dtype=np.int64)
_previous = np.zeros(_ACTION_LENGTH, dtype=np.uint8)
_free_rows = list(range(ROWS - 1, -1, -1))
_lock = threading.Lock()
_engines: list[Any] = []
"""The owner of the handler's machine code, once it is installed."""


def register(address: int, length: int) -> int:
    """Protect a mapping. Returns its row, or NOT_REGISTERED if no row is free."""
    with _lock:
        if not _free_rows:
            return NOT_REGISTERED
        row = _free_rows.pop()
    page = mmap.PAGESIZE
    _rows[row, LOST_PAGES] = 0
    _rows[row, END] = address + (length + page - 1) // page * page
    # Last, because the handler may run at any time: a row without a beginning contains nothing.
    _rows[row, BEGIN] = address
    return row


def unregister(row: int) -> None:
    """End the protection of a mapping, whose pages must not be accessed any more."""
    if row != NOT_REGISTERED:
        _rows[row] = 0
        with _lock:
            _free_rows.append(row)


def lost_pages(row: int) -> int:
    """Return how many pages of a mapping were lost and replaced."""
    return 0 if row == NOT_REGISTERED else int(_rows[row, LOST_PAGES])


def lost_pages_total() -> int:
    """Return how many pages this process has lost so far."""
    return int(_total[0])


def is_installed() -> bool:
    """Return whether this process survives the loss of mapped pages."""
    return bool(_engines)


def install() -> None:
    """Install the handler of SIGBUS in this process. Installing it again has no effect."""
    with _lock:
        if _engines:
            return
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        libc = ctypes.CDLL(None, use_errno=True)
        module = llvm.parse_assembly(str(_handler(libc)))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        action = (ctypes.c_uint8 * _ACTION_LENGTH)()
        ctypes.c_uint64.from_buffer(action).value = engine.get_function_address("on_bus_error")
        flags = ctypes.c_int32.from_buffer(action, _FLAGS_OFFSET)
        flags.value = _SA_SIGINFO | _SA_RESTART | _SA_ONSTACK
        previous = ctypes.c_void_p(address_of(_previous))
        if libc.sigaction(int(signal.SIGBUS), action, previous) != 0:
            raise OSError(ctypes.get_errno(), "cannot install the handler of SIGBUS")
        _engines.append(engine)


def _function(builder: Any, function: Any, result: Any, arguments: list[Any]) -> Any:
    """Return a libc function at its address in this process, for a call."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    kind = ir.FunctionType(result, arguments).as_pointer()
    return builder.inttoptr(_I64(address), kind)


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _I64.as_pointer())


def _handler(libc: ctypes.CDLL) -> ir.Module:
    """Return the handler `void on_bus_error(int, siginfo_t *, void *)` as LLVM code."""
    module = ir.Module("bus_error_guard")
    kind = ir.FunctionType(ir.VoidType(), [_I32, _I64, _I64])
    function = ir.Function(module, kind, "on_bus_error")
    number, info, _ = function.args
    blocks = [
        function.append_basic_block(name) for name in ("entry", "search", "look", "found", "next")
    ]
    entry, search, look, found, following = (ir.IRBuilder(block) for block in blocks)
    foreign, done = (
        ir.IRBuilder(function.append_basic_block(name)) for name in ("foreign", "done")
    )
    where = entry.load(_word(entry, entry.add(info, _I64(_ADDRESS_OFFSET))))
    entry.branch(search.block)
    row = search.phi(_I64)
    row.add_incoming(_I64(address_of(_rows.view(np.uint8).reshape(-1))), entry.block)
    end_of_rows = _I64(address_of(_rows.view(np.uint8).reshape(-1)) + _rows.nbytes)
    search.cbranch(search.icmp_unsigned("<", row, end_of_rows), look.block, foreign.block)
    begin = look.load(_word(look, row))
    end = look.load(_word(look, look.add(row, _I64(8 * END))))
    is_inside = look.and_(
        look.icmp_unsigned("<=", begin, where), look.icmp_unsigned("<", where, end)
    )
    # A row without a beginning contains nothing.
    is_inside = look.and_(is_inside, look.icmp_unsigned("!=", begin, _I64(0)))
    look.cbranch(is_inside, found.block, following.block)
    row.add_incoming(following.add(row, _I64(8 * ROW_WORDS)), following.block)
    following.branch(search.block)
    page = found.and_(where, _I64(-mmap.PAGESIZE))
    map_page = _function(found, libc.mmap, _I64, [_I64, _I64, _I32, _I32, _I32, _I64])
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    mapped = found.call(
        map_page,
        [page, _I64(mmap.PAGESIZE), _I32(protection), _I32(flags | _MAP_FIXED), _I32(-1), _I64(0)],
    )
    count = _word(found, found.add(row, _I64(8 * LOST_PAGES)))
    total = _word(found, _I64(address_of(_total.view(np.uint8))))
    found.atomic_rmw("add", count, _I64(1), "seq_cst")
    found.atomic_rmw("add", total, _I64(1), "seq_cst")
    found.cbranch(found.icmp_signed("==", mapped, page), done.block, foreign.block)
    restore = _function(foreign, libc.sigaction, _I32, [_I32, _I64, _I64])
    foreign.call(restore, [number, _I64(address_of(_previous)), _I64(0)])
    # It is blocked until the handler returns, as is the repetition of the access.
    foreign.call(_function(foreign, libc["raise"], _I32, [_I32]), [number])
    foreign.branch(done.block)
    done.ret_void()
    return module
