"""Selects the active mutant in a process. This file is copied into the mutated driver.

    WINDTUNNEL_PLANTED=17 --> a cell --> number_in_python()
                                     --> number(), for kernels, by a symbol's name

    WINDTUNNEL_PLANTED_EXECUTIONS=FILE --> cells in a file, incremented by count(0), count(1), ...

A compiled kernel is cached once for all mutants, so it must not contain the number as a constant.
It reads the number through a symbol that each process binds to a cell in its memory at startup.
The counts of executions are such cells, too. Without a file, they are not read. A program that was
forked has the cells of its parent at the same addresses, and calls `activate` for values of its
own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

from windtunnel.driver.kernels.jit import outlined_kernel as outlined_kernel
from windtunnel.driver.kernels.native_runtime import add_symbol

VARIABLE = "WINDTUNNEL_PLANTED"
"""Name of the variable with the number of the active mutant, or 0 for none."""
EXECUTIONS = "WINDTUNNEL_PLANTED_EXECUTIONS"
"""Name of the variable with the path of a file with COUNTS numbers of 8 bytes, to which all
processes add.

The first one counts executions of what the active mutant changed. Number n counts executions of
what mutant n changes, as long as no mutant of the same function is active.
"""
COUNTS = 10_001
_NUMBER_SYMBOL, _COUNTS_SYMBOL = "windtunnel_planted", "windtunnel_planted_executions"
_CELL = np.zeros(1, dtype=np.int64)
_MAP_FIXED = 0x10
_MEMORY = mmap.mmap(-1, 8 * COUNTS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
"""Pages of their own, which `activate` replaces by those of a file."""
_COUNTS = np.frombuffer(_MEMORY, dtype=np.int64)
_NUMBER_VIEW, _VIEW = memoryview(_CELL), memoryview(_COUNTS)
"""The cells for Python code: accessing an element takes a quarter of the time."""
# Define the symbols for kernels that numba compiles in this process, and for kernels from the
# cache.
for _name, _cells in ((_NUMBER_SYMBOL, _CELL), (_COUNTS_SYMBOL, _COUNTS)):
    binding.add_symbol(_name, _cells.ctypes.data)
    add_symbol(_name, _cells.ctypes.data)


def activate() -> None:
    """Set the cells as the environment variables say."""
    _CELL[0] = int(os.environ.get(VARIABLE, "0"))
    if EXECUTIONS not in os.environ:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(3 * [ctypes.c_int]), ctypes.c_long]
    address = _COUNTS.ctypes.data
    access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED
    with open(os.environ[EXECUTIONS], "r+b") as file:
        found = libc.mmap(address, 8 * COUNTS, access, kind, file.fileno(), 0)
    if found != address:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), os.environ[EXECUTIONS])


activate()


def number_in_python() -> int:
    """Return the number of the active mutant, to Python code."""
    return _NUMBER_VIEW[0]


def count_in_python(at: int) -> None:
    """Count an execution, from Python code."""
    _VIEW[at] += 1


def _cells_of(builder: Any, symbol: str) -> Any:
    cells = builder.module.globals.get(symbol)
    if cells is None:
        cells = ir.GlobalVariable(builder.module, ir.IntType(64), symbol)
        cells.linkage = "external"
    return cells


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(_cells_of(builder, _NUMBER_SYMBOL))


def _increment(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    cell = builder.gep(_cells_of(builder, _COUNTS_SYMBOL), [arguments[0]])
    builder.store(builder.add(builder.load(cell), ir.Constant(ir.IntType(64), 1)), cell)
    return context.get_dummy_value()


@intrinsic
def number(typing_context: Any) -> Any:
    """Return the number of the active mutant. Compiled kernels can call this function."""
    return types.int64(), _read


@intrinsic
def count(typing_context: Any, at: Any) -> Any:
    """Count an execution. Compiled kernels can call this function."""
    return types.void(types.int64), _increment
