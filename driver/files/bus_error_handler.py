"""LLVM code of the SIGBUS handler that `bus_error_guard` installs.

This module is imported only to compile the handler, because it imports llvmlite. The handler refers
to its tables and to libc by symbol name, so it can be stored in the kernel cache.
"""

import mmap
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from windtunnel.driver.files.bus_error_table import (
    END,
    LOST_PAGES,
    MAPPINGS,
    PAGE_LENGTH,
    PREVIOUS_ACTION,
    READ_END,
    ROW_WORDS,
    ROWS,
    TOTAL,
    WRITE_END,
)

_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000
_ADDRESS_OFFSET = 16
"""Offset of `si_addr` in `siginfo_t` on 64-bit Linux."""
_ERROR_OFFSET = 192
"""Offset of the page fault's error code in `ucontext_t` on x86-64 Linux."""
_WRITE = 2
"""The bit of the error code that is set after a write."""
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def object_code(name: str) -> bytes:
    """Return the handler `void name(int, siginfo_t *, void *)` as an ELF object file."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(_handler(name)))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="static", codemodel="jitdefault", jit=True
    )
    found: bytes = machine.emit_object(module)
    return found


def _external(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Declare a libc function. Returns the declaration, which generated code can call."""
    return ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _table(builder: Any, name: str) -> Any:
    """Declare a table that the SIGBUS handler uses. Returns the table's address as an integer for
    generated code.
    """
    table = ir.GlobalVariable(builder.module, ir.IntType(8), name)
    return builder.ptrtoint(table, _I64)


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _I64.as_pointer())


def _lost_pages(found: Any, context: Any, where: Any, row: Any, begin: Any) -> tuple[Any, Any]:
    """Return the address and the length of the pages to replace after a failed access."""
    error = found.load(_word(found, found.add(context, _I64(_ERROR_OFFSET))))
    is_write = found.icmp_unsigned("!=", found.and_(error, _I64(_WRITE)), _I64(0))
    write_end = found.load(_word(found, found.add(row, _I64(8 * WRITE_END))))
    read_end = found.load(_word(found, found.add(row, _I64(8 * READ_END))))
    end = found.select(is_write, write_end, read_end)
    is_together = found.icmp_unsigned("<", where, end)
    page_length = found.load(_word(found, found.add(row, _I64(8 * PAGE_LENGTH))))
    page = found.and_(where, found.sub(_I64(0), page_length))
    return (
        found.select(is_together, begin, page),
        found.select(is_together, found.sub(end, begin), page_length),
    )


def _handler(name: str) -> ir.Module:
    module = ir.Module(name)
    kind = ir.FunctionType(ir.VoidType(), [_I32, _I64, _I64])
    function = ir.Function(module, kind, name)
    number, info, context = function.args
    blocks = [
        function.append_basic_block(name) for name in ("entry", "search", "look", "found", "next")
    ]
    entry, search, look, found, following = (ir.IRBuilder(block) for block in blocks)
    foreign, done = (
        ir.IRBuilder(function.append_basic_block(name)) for name in ("foreign", "done")
    )
    where = entry.load(_word(entry, entry.add(info, _I64(_ADDRESS_OFFSET))))
    rows = _table(entry, MAPPINGS)
    entry.branch(search.block)
    row = search.phi(_I64)
    row.add_incoming(rows, entry.block)
    end_of_rows = search.add(rows, _I64(ROWS * ROW_WORDS * 8))
    search.cbranch(search.icmp_unsigned("<", row, end_of_rows), look.block, foreign.block)
    begin = look.load(_word(look, row))
    end = look.load(_word(look, look.add(row, _I64(8 * END))))
    is_inside = look.and_(
        look.icmp_unsigned("<=", begin, where), look.icmp_unsigned("<", where, end)
    )
    # A row whose BEGIN is 0 is not in use.
    is_inside = look.and_(is_inside, look.icmp_unsigned("!=", begin, _I64(0)))
    look.cbranch(is_inside, found.block, following.block)
    row.add_incoming(following.add(row, _I64(8 * ROW_WORDS)), following.block)
    following.branch(search.block)
    first, length = _lost_pages(found, context, where, row, begin)
    map_pages = _external(found, "mmap", _I64, [_I64, _I64, _I32, _I32, _I32, _I64])
    protection = _I32(mmap.PROT_READ | mmap.PROT_WRITE)
    flags = _I32(mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED | _MAP_NORESERVE)
    mapped = found.call(map_pages, [first, length, protection, flags, _I32(-1), _I64(0)])
    count = _word(found, found.add(row, _I64(8 * LOST_PAGES)))
    total = _word(found, _table(found, TOTAL))
    found.atomic_rmw("add", count, _I64(1), "seq_cst")
    found.atomic_rmw("add", total, _I64(1), "seq_cst")
    found.cbranch(found.icmp_signed("==", mapped, first), done.block, foreign.block)
    restore = _external(foreign, "sigaction", _I32, [_I32, _I64, _I64])
    foreign.call(restore, [number, _table(foreign, PREVIOUS_ACTION), _I64(0)])
    # The signal stays blocked until the handler returns. Then the previous action is executed.
    foreign.call(_external(foreign, "raise", _I32, [_I32]), [number])
    foreign.branch(done.block)
    done.ret_void()
    return module
