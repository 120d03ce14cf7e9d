"""Selects the active mutant in a process. This file is copied into the mutated driver.

    WINDTUNNEL_PLANTED=17 --> NUMBER, for Python code
                          --> a cell under a symbol's name --> number(), for kernels

    WINDTUNNEL_PLANTED_EXECUTIONS=FILE --> a cell in a file, incremented by note()

A compiled kernel is cached once for all mutants, so it must not contain the number as a constant.
It reads the number through a symbol that each process binds to a cell in its memory at startup.
The count of executions is such a cell, too. Without a file, it is not read.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

from windtunnel.driver.kernels.native_runtime import add_symbol

VARIABLE = "WINDTUNNEL_PLANTED"
NUMBER = int(os.environ.get(VARIABLE, "0"))
"""Number of the active mutant, or 0 for none."""
EXECUTIONS = "WINDTUNNEL_PLANTED_EXECUTIONS"
"""Name of the variable with the path of a file of 8 bytes, which counts executions of what the
active mutant changed, in all processes together.
"""
_NUMBER_SYMBOL, _COUNT_SYMBOL = "windtunnel_planted", "windtunnel_planted_executions"
_CELL = np.array([NUMBER], dtype=np.int64)
_COUNT = (
    np.memmap(os.environ[EXECUTIONS], dtype=np.int64, mode="r+", shape=(1,))
    if EXECUTIONS in os.environ
    else np.zeros(1, dtype=np.int64)
)
# Define the symbols for kernels that numba compiles in this process, and for kernels from the
# cache.
for _name, _cell in ((_NUMBER_SYMBOL, _CELL), (_COUNT_SYMBOL, _COUNT)):
    binding.add_symbol(_name, _cell.ctypes.data)
    add_symbol(_name, _cell.ctypes.data)


def note_in_python() -> None:
    """Count an execution of what the active mutant changed, from Python code."""
    _COUNT[0] += 1


def _cell_of(builder: Any, symbol: str) -> Any:
    cell = builder.module.globals.get(symbol)
    if cell is None:
        cell = ir.GlobalVariable(builder.module, ir.IntType(64), symbol)
        cell.linkage = "external"
    return cell


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(_cell_of(builder, _NUMBER_SYMBOL))


def _increment(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    cell = _cell_of(builder, _COUNT_SYMBOL)
    builder.store(builder.add(builder.load(cell), ir.Constant(ir.IntType(64), 1)), cell)
    return context.get_dummy_value()


@intrinsic
def number(typing_context: Any) -> Any:
    """Return the number of the active mutant. Compiled kernels can call this function."""
    return types.int64(), _read


@intrinsic
def note(typing_context: Any) -> Any:
    """Count an execution of what the active mutant changed. Compiled kernels can call this
    function.
    """
    return types.void(), _increment
