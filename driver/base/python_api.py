"""Functions of Python's C API for the kernels of Python methods (`kernels.python_method`).

Objects are addresses, int64. A function that creates an object returns a new reference, or 0 after
it set an exception. No kernel without the GIL may call any of them.
Source: Python's C API, section numbers as in its reference manual.
"""

from typing import Any

from windtunnel.driver.base.atomics import bytes_at, get_i64
from windtunnel.driver.kernels.jit import Deferred, kernel

BUFFER_LENGTH = 80
"""Length of a `Py_buffer`."""
BUFFER_ADDRESS, BUFFER_BYTES, BUFFER_FORMAT = 0, 16, 40
"""Offsets in a `Py_buffer`: the address and the number of the bytes, and the address of the format
string.
"""
SIMPLE, FORMAT = 0, 4
"""Flags for `get_buffer`: contiguous bytes, with or without their format string."""

FIRST_ARGUMENT = 8
"""Offset of the arguments of `call` in memory from `argument_space`. The first word is free,
because a bound method puts its object there.
"""
_MAY_USE_FIRST_WORD = -(1 << 63)

EQUAL = 2
TYPE_OFFSET = 8
BYTES_LENGTH, BYTES_CONTENT = 16, bytes.__basicsize__ - 1
"""Offsets in a `bytes` object: its length, and its content."""


def _intrinsic(name: str, *arguments: Any) -> Any:
    """Return an intrinsic that `llvm_python_api` creates when a kernel is compiled."""

    def make() -> Any:
        from windtunnel.driver.base import llvm_python_api

        found = getattr(llvm_python_api, name)
        return found(*arguments) if arguments else found

    return Deferred(make)


def _function(name: str, arguments: tuple[int, ...], result: int) -> Any:
    """Declare a C function. `arguments` and `result` are the lengths of its integers in bits."""
    return _intrinsic("c_function", name, arguments, result)


def _object(name: str) -> Any:
    """Declare a function that returns the address of a C object."""
    return _intrinsic("c_object", name)


def _space(length: int) -> Any:
    """Declare a function that returns the address of memory that exists until the calling kernel
    returns. The memory is not cleared. Only the kernel of a Python method itself may call it.
    """
    return _intrinsic("stack_space", length)


get_buffer = _function("PyObject_GetBuffer", (64, 64, 32), 32)
release_buffer = _function("PyBuffer_Release", (64,), 0)
retain = _function("Py_IncRef", (64,), 0)
release = _function("Py_DecRef", (64,), 0)
int_of = _function("PyLong_FromLongLong", (64,), 64)
value_of = _function("PyLong_AsLongLongAndOverflow", (64, 64), 64)
slice_of = _function("PySequence_GetSlice", (64, 64, 64), 64)
compare = _function("PyObject_RichCompareBool", (64, 64, 32), 32)
is_subtype = _function("PyType_IsSubtype", (64, 64), 32)
clear_error = _function("PyErr_Clear", (), 0)
is_error = _function("PyErr_ExceptionMatches", (64,), 32)
_save_thread = _function("PyEval_SaveThread", (), 64)
_restore_thread = _function("PyEval_RestoreThread", (64,), 0)
_vector_call = _function("PyObject_Vectorcall", (64, 64, 64, 64), 64)

none = _object("_Py_NoneStruct")
int_type = _object("PyLong_Type")
bytes_type = _object("PyBytes_Type")
bytearray_type = _object("PyByteArray_Type")
memoryview_type = _object("PyMemoryView_Type")
buffer_error = _object("PyExc_BufferError")
type_error = _object("PyExc_TypeError")
value_error = _object("PyExc_ValueError")

record_at = _intrinsic("record_at")
buffer_space = _space(BUFFER_LENGTH)
argument_space = _space(32)


@kernel
def type_of(value):
    """Return the type of an object."""
    return get_i64(bytes_at(value, TYPE_OFFSET + 8), TYPE_OFFSET)


@kernel
def call(function, space, count):
    """Call a Python function with `count` arguments, which begin at FIRST_ARGUMENT in memory from
    `argument_space`.
    """
    return _vector_call(function, space + FIRST_ARGUMENT, count | _MAY_USE_FIRST_WORD, 0)


@kernel
def pass_on(function, arguments, count, names):
    """Call a Python function with the arguments of a Python method, and return its result. Another
    thread may release the function meanwhile.
    """
    retain(function)
    found = _vector_call(function, arguments, count, names)
    release(function)
    return found


@kernel
def let_others_run():
    """Release the GIL for a moment. A thread that calls a method again and again without success
    would otherwise keep others from running for up to 5 ms at a time, perhaps those it waits for.
    """
    _restore_thread(_save_thread())
