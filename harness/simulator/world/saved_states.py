"""The state of an agent as bytes: written down once, taken up again by whoever has its address.

    keep(agents of a, address)            take_up(like, address) --> agents of a
    keep(agents of b, address)

A kernel is given states as arguments, one by one, and each array of them costs time at each call.
Of several states of one kind it may be given one, so that it knows the kind, and the addresses of
all. What is kept are addresses of arrays: these must outlive it. When the JIT is off, numba cannot
run intrinsics, and the address of a state is a number under which it is known. Refuses to know what
it keeps.
"""

from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numba import config, int64
from numba.extending import intrinsic

from windtunnel.driver.kernels.jit import kernel

_WORD_BYTES = 8


def _type_size_of(typing_context: Any, state: Any) -> Any:
    """The bytes that a state of this kind takes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[0])
        return context.get_constant(signature.return_type, context.get_abi_sizeof(kind))

    return int64(state), generate


def _type_keep(typing_context: Any, state: Any, address: Any) -> Any:
    """Write a state to an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, at = arguments
        builder.store(held, builder.inttoptr(at, held.type.as_pointer()), align=_WORD_BYTES)
        return at

    return int64(state, address), generate


def _type_take_up(typing_context: Any, like: Any, address: Any) -> Any:
    """The state at an address, which must be of the same kind as another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        at = builder.inttoptr(arguments[1], kind.as_pointer())
        return builder.load(at, align=_WORD_BYTES)

    return like(like, address), generate


def _known_take_up(like: Any, address: int) -> Any:
    """What `take_up` is when the JIT is off."""
    return _known[address].state


_JIT_DISABLED: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]  # set at run time
_size_of: Any = intrinsic(_type_size_of)
_keep: Any = intrinsic(_type_keep)
take_up: Any = _known_take_up if _JIT_DISABLED else intrinsic(_type_take_up)
"""(like, address) -> the state at an address, which must be of the same kind as another."""


@kernel
def _size_in_bytes(state: Any) -> int:
    return int(_size_of(state))


@kernel
def _write(state: Any, address: int) -> int:
    return int(_keep(state, address))


class KeptState:
    """A state in memory, as long as this lives."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.address = id(self)
        if _JIT_DISABLED:
            _known[self.address] = self
            return
        self._memory = np.zeros(1 + _size_in_bytes(state) // _WORD_BYTES, dtype=np.int64)
        self.address = self._memory.ctypes.data
        _write(state, self.address)


_known: WeakValueDictionary[int, KeptState] = WeakValueDictionary()
"""When the JIT is off, by address."""
