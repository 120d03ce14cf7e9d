"""Typed memory access: plain, ordered and atomic, for compiled kernels and plain Python.

`buf` is a contiguous uint8 array and `at` a byte offset into it. A function without a suffix is a
plain access. The name of an ordered access ends with its ordering. All integers are returned as
int64.

    get_i32, get_i64, get_u16, get_u8              plain load, any alignment
    put_i32, put_i64, put_u16, put_u8              plain store, any alignment
    get_*_acquire, put_*_release                   ordered; naturally aligned addresses only
    cas_i32, cas_i64 -> bool                       compare and set, full order
    add_i32, add_i64 -> value before               fetch and add, full order

With `NUMBA_BOUNDSCHECK=1` every access asserts that it is within the array. Otherwise the caller
must have validated the frame.
"""

import numpy as np

from windtunnel.driver.base import intrinsics
from windtunnel.driver.kernels.jit import BOUNDS_CHECKED, kernel

LINE_LENGTH = 64
"""Length of a cache line."""
AHEAD_LENGTH = 2048
"""Distance at which lines are loaded into the cache before they are needed."""

_load_u8, _load_u16 = intrinsics.load_of["u8", None], intrinsics.load_of["u16", None]
_load_i32, _load_i64 = intrinsics.load_of["i32", None], intrinsics.load_of["i64", None]
_load_i32_acquire = intrinsics.load_of["i32", "acquire"]
_load_i64_acquire = intrinsics.load_of["i64", "acquire"]
_store_u8, _store_u16 = intrinsics.store_of["u8", None], intrinsics.store_of["u16", None]
_store_i32, _store_i64 = intrinsics.store_of["i32", None], intrinsics.store_of["i64", None]
_store_u8_release = intrinsics.store_of["u8", "release"]
_store_i32_release = intrinsics.store_of["i32", "release"]
_store_i64_release = intrinsics.store_of["i64", "release"]
_cas_i32, _cas_i64 = intrinsics.compare_and_set_of["i32"], intrinsics.compare_and_set_of["i64"]
_add_i32, _add_i64 = intrinsics.fetch_add_of["i32"], intrinsics.fetch_add_of["i64"]
_move, _fill_zero = intrinsics.move, intrinsics.fill_zero
_prefetch = intrinsics.prefetch
_prefetch_to_write = intrinsics.prefetch_to_write
_fence_acquire, _fence_release = intrinsics.fence_acquire, intrinsics.fence_release
_fence_full, bytes_at = intrinsics.fence_full, intrinsics.bytes_at

CHECKED = BOUNDS_CHECKED


@kernel
def get_u8(buf, at):
    if CHECKED:
        assert 0 <= at and at + 1 <= buf.size
    return _load_u8(buf, at)


@kernel
def get_u16(buf, at):
    if CHECKED:
        assert 0 <= at and at + 2 <= buf.size
    return _load_u16(buf, at)


@kernel
def get_i32(buf, at):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    return _load_i32(buf, at)


@kernel
def get_i64(buf, at):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    return _load_i64(buf, at)


@kernel
def get_i32_acquire(buf, at):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    return _load_i32_acquire(buf, at)


@kernel
def get_i64_acquire(buf, at):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    return _load_i64_acquire(buf, at)


@kernel
def put_u8(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 1 <= buf.size
    _store_u8(buf, at, value)


@kernel
def put_u16(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 2 <= buf.size
    _store_u16(buf, at, value)


@kernel
def put_i32(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    _store_i32(buf, at, value)


@kernel
def put_i64(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    _store_i64(buf, at, value)


@kernel
def put_u8_release(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 1 <= buf.size
    _store_u8_release(buf, at, value)


@kernel
def put_i32_release(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    _store_i32_release(buf, at, value)


@kernel
def put_i64_release(buf, at, value):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    _store_i64_release(buf, at, value)


@kernel
def cas_i32(buf, at, expected, desired):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    return _cas_i32(buf, at, expected, desired)


@kernel
def cas_i64(buf, at, expected, desired):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    return _cas_i64(buf, at, expected, desired)


@kernel
def add_i32(buf, at, delta):
    if CHECKED:
        assert 0 <= at and at + 4 <= buf.size
    return _add_i32(buf, at, delta)


@kernel
def add_i64(buf, at, delta):
    if CHECKED:
        assert 0 <= at and at + 8 <= buf.size
    return _add_i64(buf, at, delta)


@kernel
def copy(target, target_at, source, source_at, length):
    """Copy `length` bytes. The source and destination ranges may overlap."""
    if CHECKED:
        assert length >= 0 and 0 <= target_at and target_at + length <= target.size
        assert 0 <= source_at and source_at + length <= source.size
    _move(target, target_at, source, source_at, length)


@kernel
def zero(target, at, length):
    if CHECKED:
        assert length >= 0 and 0 <= at and at + length <= target.size
    _fill_zero(target, at, length)


@kernel
def prefetch(buf, at):
    """Load a cache line that will be read soon. `at` may be beyond the end of the array."""
    _prefetch(buf, at)


@kernel
def prefetch_to_write(buf, at):
    """Load a cache line that will be written soon, as the only one that has it. `at` may be beyond
    the end of the array.
    """
    _prefetch_to_write(buf, at)


@kernel
def copy_ahead(target, target_at, source, source_at, length):
    """Copy `length` bytes to memory that is not in the cache and is written in order, like a log.

    Lines are loaded before they are written, also those after the range, which the next copy will
    write. The ranges must not overlap.
    """
    if CHECKED:
        assert length >= 0 and 0 <= target_at and target_at + length <= target.size
        assert 0 <= source_at and source_at + length <= source.size
    done = 0
    if length >= 2 * LINE_LENGTH:
        done = -target_at % LINE_LENGTH
        _move(target, target_at, source, source_at, done)
    while done <= length - LINE_LENGTH:
        _prefetch_to_write(target, target_at + done + AHEAD_LENGTH)
        _move(target, target_at + done, source, source_at + done, LINE_LENGTH)
        done += LINE_LENGTH
    _move(target, target_at + done, source, source_at + done, length - done)


@kernel
def acquire_fence():
    _fence_acquire()


@kernel
def release_fence():
    _fence_release()


@kernel
def full_fence():
    _fence_full()


def address_of(array: np.ndarray) -> int:
    """Return the absolute address of an array's first byte, for `bytes_at` and for system calls."""
    return int(array.__array_interface__["data"][0])
