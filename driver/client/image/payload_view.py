"""The memoryviews in which a native poll passes payloads to a Python handler.

    log's array <-- memoryview of the log <-- payload view <-- handler

Creating a view takes longer than all else that a poll does for a fragment. So a view that no one
else refers to after the handler has returned is moved to the next payload: it cannot be
distinguished from a new one. A view that the handler kept, or from which it made an array, stays as
it is. So does one that has been released. Every view keeps the log mapped.

The fields of a memoryview are part of Python's C API (`cpython/memoryobject.h`), but could change
in a later version. `movable_flags` checks at run time whether they are where this module expects
them. Otherwise each payload gets a new view.
"""

import ctypes
import weakref
from pickle import PickleBuffer

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import bytes_at, get_i32, get_i64, put_i64
from windtunnel.driver.kernels.jit import kernel

_REFERENCES = 0
_HASH, _FLAGS, _EXPORTS = 32, 40, 48
_ADDRESS, _LENGTH, _ITEM_SIZE, _DIMENSIONS, _SHAPE = 56, 72, 80, 92, 104
_WEAK_REFERENCES, _FIRST_SHAPE = 136, 144
_VIEW_LENGTH = 168
"""Length in bytes of a memoryview of one dimension."""
NEVER_MOVED = -1
"""Stands for the flags of a view that may be moved if there is no such view."""


def _word(view: memoryview, offset: int) -> int:
    return ctypes.c_int64.from_address(id(view) + offset).value


def _half(view: memoryview, offset: int) -> int:
    return ctypes.c_int32.from_address(id(view) + offset).value


def movable_flags() -> int:
    """Return the flags of a slice of a writable memoryview of bytes that has not been released, or
    NEVER_MOVED if this version of Python has another kind of memoryview.
    """
    if (memoryview.__basicsize__, memoryview.__itemsize__) != (_FIRST_SHAPE, 8):
        return NEVER_MOVED
    whole = memoryview(bytearray(16))
    part = whole[3:10]
    expected = {
        _ADDRESS: _word(whole, _ADDRESS) + 3, _LENGTH: 7, _ITEM_SIZE: 1, _FIRST_SHAPE: 7,
        _SHAPE: id(part) + _FIRST_SHAPE, _HASH: -1, _EXPORTS: 0, _WEAK_REFERENCES: 0,
    }  # fmt: skip
    if any(_word(part, offset) != value for offset, value in expected.items()):
        return NEVER_MOVED
    flags, references = _half(part, _FLAGS), _half(part, _REFERENCES)
    export, weak = PickleBuffer(part), weakref.ref(part)
    is_known = _word(part, _EXPORTS) == 1 and _half(part, _REFERENCES) == references + 1
    is_known = is_known and _word(part, _WEAK_REFERENCES) == id(weak)
    is_known = is_known and _half(part, _DIMENSIONS) == 1
    export.release()
    part.release()
    return flags if is_known and _half(part, _FLAGS) != flags else NEVER_MOVED


@kernel
def is_unshared(view, flags):
    """Return whether the caller has the only reference to a view, and it is as it was created."""
    fields = bytes_at(view, _VIEW_LENGTH)
    return (
        get_i32(fields, _REFERENCES) == 1
        and get_i32(fields, _FLAGS) == flags
        and get_i64(fields, _EXPORTS) == 0
        and get_i64(fields, _WEAK_REFERENCES) == 0
        and get_i64(fields, _HASH) == -1
    )


@kernel
def move(view, address, length):
    """Let an unshared view show other bytes of the same log."""
    fields = bytes_at(view, _VIEW_LENGTH)
    put_i64(fields, _ADDRESS, address)
    put_i64(fields, _LENGTH, length)
    put_i64(fields, _FIRST_SHAPE, length)


@kernel
def view_of(whole, spare, flags, log_address, at, length):
    """Return a view of `length` bytes at the offset `at` of the log that the view `whole` shows.

    Uses the view `spare` if possible, and otherwise gives up the reference to it. `spare` may be 0.
    Returns: a reference to a view, or 0 after an exception was set
    """
    if spare != 0:
        if is_unshared(spare, flags):
            move(spare, log_address + at, length)
            return spare
        api.release(spare)
    return api.slice_of(whole, at, at + length)
