"""Selects the active mutant in a process. This file is copied into the mutated driver.

    WINDTUNNEL_PLANTED=17 --> NUMBER, for Python code
                          --> a cell under a symbol's name --> number(), for kernels

A compiled kernel is cached once for all mutants, so it must not contain the number as a constant.
It reads the number through a symbol that each process binds to a cell in its memory at startup.
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
_SYMBOL = "windtunnel_planted"
_CELL = np.array([NUMBER], dtype=np.int64)
# Define the symbol for kernels that numba compiles in this process, and for kernels from the cache.
binding.add_symbol(_SYMBOL, _CELL.ctypes.data)
add_symbol(_SYMBOL, _CELL.ctypes.data)


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    cell = builder.module.globals.get(_SYMBOL)
    if cell is None:
        cell = ir.GlobalVariable(builder.module, ir.IntType(64), _SYMBOL)
        cell.linkage = "external"
    return builder.load(cell)


@intrinsic
def number(typing_context: Any) -> Any:
    """Return the number of the active mutant. Compiled kernels can call this function."""
    return types.int64(), _read
