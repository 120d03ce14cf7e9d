"""Copies the states of a driver's agents to memory, from which compiled kernels load them by
address.

    SavedState(agents of a) --> address            load_state(like, address) --> agents of a
    SavedState(agents of b) --> address

A kernel receives states as arguments, and each of their arrays costs time at each call. For several
states of one type, it can instead receive one of them, which fixes the type, and all addresses. The
bytes contain addresses of arrays, which must outlive them. Without the JIT, numba cannot run
intrinsics, and a state's address is a key into a dictionary.
"""

from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred, kernel

_WORD_BYTES = 8


def _make_size_of() -> Any:
    from numba import int64
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[0])
        return context.get_constant(signature.return_type, context.get_abi_sizeof(kind))

    def size_of(typing_context: Any, state: Any) -> Any:
        """Return the size of a state in bytes."""
        return int64(state), generate

    return intrinsic(size_of)


def _make_store() -> Any:
    from numba import int64
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, at = arguments
        builder.store(held, builder.inttoptr(at, held.type.as_pointer()), align=_WORD_BYTES)
        return at

    def store(typing_context: Any, state: Any, address: Any) -> Any:
        """Copy a state to the memory at an address."""
        return int64(state, address), generate

    return intrinsic(store)


def _make_load_state() -> Any:
    from numba.extending import intrinsic

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        at = builder.inttoptr(arguments[1], kind.as_pointer())
        return builder.load(at, align=_WORD_BYTES)

    def load_state(typing_context: Any, like: Any, address: Any) -> Any:
        """Load a state with the same type as `like` from an address."""
        return like(like, address), generate

    return intrinsic(load_state)


def _save_state(state: Any, address: int) -> int:
    """Note the state that is saved at an address. Replaces the compiled function when the JIT is
    disabled.
    """
    _saved_states[address] = state
    return address


def _load_state(like: Any, address: int) -> Any:
    """Return the state that was saved at an address. Replaces the compiled function when the JIT is
    disabled.
    """
    return _saved_states[address]


_saved_states: dict[int, Any] = {}
size_of: Any = (lambda state: 0) if JIT_DISABLED else Deferred(_make_size_of)
"""Compiled function (state) -> its size in bytes, or 0 when the JIT is disabled."""
save_state: Any = _save_state if JIT_DISABLED else Deferred(_make_store)
"""Compiled function (state, address) -> address. The memory must have space for the state."""
load_state: Any = _load_state if JIT_DISABLED else Deferred(_make_load_state)
"""Compiled function (like, address) -> state. The state must have the same type as `like`."""


@kernel
def _size_in_bytes(state: Any) -> int:
    return int(size_of(state))


@kernel
def _write(state: Any, address: int) -> int:
    return int(save_state(state, address))


class SavedState:
    """A copy of an agent's state in memory, valid for the lifetime of this object."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self._memory = np.zeros(1 + _size_in_bytes(state) // _WORD_BYTES, dtype=np.int64)
        self.address = self._memory.ctypes.data
        _write(state, self.address)
