"""Loads, stores, fences and atomics for compiled kernels, each with a pure Python equivalent.

Only `atomics` calls these functions, which check nothing at run time. `llvm_intrinsics` contains
their compiled form, and is imported when a kernel is compiled. If the JIT is disabled, the Python
equivalents replace them, using `struct`, which checks ranges.
"""

import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.kernels.jit import JIT_DISABLED, Deferred

_FORMATS = {"u8": "<B", "u16": "<H", "i32": "<i", "i64": "<q"}
_BITS = {"u8": 8, "u16": 16, "i32": 32, "i64": 64}


def bytes_at(address: int, length: int) -> np.ndarray:
    """Return the bytes at an absolute address as an array, without copying or allocating.

    Kernels that access many mappings keep their addresses in records, because numba has no arrays
    of arrays. A mapping must outlive every kernel that may use its address.
    """
    return _python_bytes_at(address, length)


_python_lock = threading.Lock()


def _python_load(kind):
    return lambda buf, at: struct.unpack_from(_FORMATS[kind], buf, at)[0]


def _python_store(kind):
    mask = (1 << _BITS[kind]) - 1
    unsigned = {"u8": "<B", "u16": "<H", "i32": "<I", "i64": "<Q"}[kind]
    return lambda buf, at, value: struct.pack_into(unsigned, buf, at, int(value) & mask)


def _python_compare_and_set(kind):
    load, store = _python_load(kind), _python_store(kind)

    def compare_and_set(buf, at, expected, desired):
        with _python_lock:
            if load(buf, at) != expected:
                return False
            store(buf, at, desired)
            return True

    return compare_and_set


def _python_fetch_add(kind):
    load, store = _python_load(kind), _python_store(kind)

    def fetch_add(buf, at, delta):
        with _python_lock:
            before = load(buf, at)
            store(buf, at, before + delta)
            return before

    return fetch_add


def _python_move(target, target_at, source, source_at, length):
    assert 0 <= target_at and target_at + length <= target.size
    assert 0 <= source_at and source_at + length <= source.size
    target[target_at : target_at + length] = source[source_at : source_at + length].copy()


def _python_fill_zero(target, target_at, length):
    assert 0 <= target_at and target_at + length <= target.size
    target[target_at : target_at + length] = 0


def _python_bytes_at(address, length):
    return np.ctypeslib.as_array((ctypes.c_uint8 * int(length)).from_address(int(address)))


def _compiled(name: str, key: object = None, function: Callable[..., Any] | None = None) -> Any:
    """Return a numba intrinsic, created on first use, for a function in `llvm_intrinsics` or for an
    entry in one of that module's dictionaries.
    """

    def make() -> Any:
        from windtunnel.driver.base import llvm_intrinsics

        found = getattr(llvm_intrinsics, name)
        return found if key is None else found[key]

    return Deferred(make, function)


if JIT_DISABLED:
    load_of = {(kind, order): _python_load(kind) for kind in _BITS for order in (None, "acquire")}
    store_of = {(kind, order): _python_store(kind) for kind in _BITS for order in (None, "release")}
    compare_and_set_of = {kind: _python_compare_and_set(kind) for kind in ("i32", "i64")}
    fetch_add_of = {kind: _python_fetch_add(kind) for kind in ("i32", "i64")}
    move, fill_zero = _python_move, _python_fill_zero

    def prefetch(buf, at):
        """Do nothing. A prefetch has no effect but on the time of later accesses."""

    prefetch_to_write = prefetch

    def fence_acquire() -> None:
        """Do nothing. Without the JIT no fence is needed, because the GIL orders all memory
        accesses.
        """

    fence_release = fence_full = fence_acquire
else:
    load_of = {
        (kind, order): _compiled("load_of", (kind, order))
        for kind in _BITS
        for order in (None, "acquire")
    }
    store_of = {
        (kind, order): _compiled("store_of", (kind, order))
        for kind in _BITS
        for order in (None, "release")
    }
    compare_and_set_of = {kind: _compiled("compare_and_set_of", kind) for kind in ("i32", "i64")}
    fetch_add_of = {kind: _compiled("fetch_add_of", kind) for kind in ("i32", "i64")}
    move, fill_zero = _compiled("move"), _compiled("fill_zero")
    prefetch, prefetch_to_write = (_compiled("prefetch_of", is_write) for is_write in (False, True))
    fence_acquire, fence_release, fence_full = (
        _compiled("fence_of", ordering) for ordering in ("acquire", "release", "seq_cst")
    )
    bytes_at = _compiled("bytes_at", function=bytes_at)
