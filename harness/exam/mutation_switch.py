"""Which of the planted defects is at work in a process; a copy of this goes into the driver's copy.

    WINDTUNNEL_PLANTED=17 --> NUMBER, for what is Python
                          --> a cell under a symbol's name --> number(), for kernels

A kernel is compiled once for all defects and kept, so the number must be none of its constants: it
is read through a symbol that each process binds to a cell of its own when it starts.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

VARIABLE = "WINDTUNNEL_PLANTED"
NUMBER = int(os.environ.get(VARIABLE, "0"))
"""0 for the sound driver."""
_SYMBOL = "windtunnel_planted"
_CELL = np.array([NUMBER], dtype=np.int64)
binding.add_symbol(_SYMBOL, _CELL.ctypes.data)


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    cell = builder.module.globals.get(_SYMBOL)
    if cell is None:
        cell = ir.GlobalVariable(builder.module, ir.IntType(64), _SYMBOL)
        cell.linkage = "external"
    return builder.load(cell)


@intrinsic
def number(typing_context: Any) -> Any:
    """The number of the defect that is at work; to be called by kernels."""
    return types.int64(), _read
