"""LLVM code that gives the kernels of `fast_calls_kernels` the interface of C functions.

    C caller --> wrapper --> kernel --the usual case--> result, and errno
                                    `--UNUSUAL--> the version in Python

This module is imported only to compile them, because it imports llvmlite.
Source: numba 0.68, `CPUCallConv`, for the arguments of a kernel's machine code.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir

from windtunnel.harness.simulator.real_driver.fast_calls_kernels import UNUSUAL
from windtunnel.harness.simulator.real_driver.fast_calls_table import INNER, SLOW, TABLE

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def object_code(name: str, index: int, bits: Sequence[int]) -> bytes:
    """Return the function `fast_<name>` as an ELF object file.

    `index` is its index in the table's addresses, and `bits` are the sizes of its result and of its
    arguments, which are integers or pointers.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(str(_wrapper(name, index, bits)))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="static", codemodel="jitdefault", jit=True
    )
    found: bytes = machine.emit_object(module)
    return found


def _wrapper(name: str, index: int, bits: Sequence[int]) -> ir.Module:
    module = ir.Module(name)
    result, *arguments = (ir.IntType(each) for each in bits)
    kind = ir.FunctionType(result, arguments)
    function = ir.Function(module, kind, f"fast_{name}")
    table = ir.GlobalVariable(module, ir.IntType(8), TABLE)
    entry, slow, usual, fault, done = (
        ir.IRBuilder(function.append_basic_block(each))
        for each in ("entry", "slow", "usual", "fault", "done")
    )

    def address(builder: Any, word: int) -> Any:
        """Return a word of the table."""
        at = builder.add(builder.ptrtoint(table, _I64), _I64(8 * word))
        return builder.load(builder.inttoptr(at, _I64.as_pointer()))

    found, error = entry.alloca(_I64), entry.alloca(_I64)
    wide = [entry.sext(each, _I64) if each.type != _I64 else each for each in function.args]
    given = [found, error, entry.ptrtoint(table, _I64), *wide]
    inner = ir.FunctionType(_I32, [each.type for each in given])
    entry.call(entry.inttoptr(address(entry, INNER + index), inner.as_pointer()), given)
    value = entry.load(found)
    is_unusual = entry.icmp_signed("==", value, _I64(UNUSUAL))
    entry.cbranch(is_unusual, slow.block, usual.block)
    python = slow.inttoptr(address(slow, SLOW + index), kind.as_pointer())
    slow.ret(slow.call(python, list(function.args)))
    usual.cbranch(usual.icmp_signed("<", value, _I64(0)), fault.block, done.block)
    location = ir.FunctionType(_I32.as_pointer(), [])
    errno_location = ir.Function(module, location, "__errno_location")
    number = fault.trunc(fault.neg(value), _I32)
    fault.store(number, fault.call(errno_location, []))
    fault.ret(result(-1))
    done.ret(value if result == _I64 else done.trunc(value, result))
    return module
