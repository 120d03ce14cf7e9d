"""Python types whose attributes are 64-bit integers that machine code can access, too.

    class State(integer_fields("State", ("position", "limit"))): ...

    object:   | header of a Python object | position | limit | slots of the subclass ...
    offset    0                           16         24      32

In Python, a field is an attribute that holds an int. A kernel reads and writes it at a constant
offset from the address of the object, which is its `id`. If Python methods in machine code are not
available, the fields are ordinary attributes. Source: Python's C API, `PyType_FromSpec`.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from windtunnel.driver.kernels.python_method import IS_AVAILABLE

HEADER_LENGTH = object.__basicsize__
"""Length in bytes of the header of a Python object, after which the fields begin."""
FIELD_LENGTH = 8

_LONG_LONG = 17
_BASE_TYPE = 1 << 10
_MEMBERS, _END = 72, 0
_kept: list[Any] = []
"""What Python's types refer to, but do not copy."""


class _Member(ctypes.Structure):
    """`PyMemberDef`: a field of an object."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    """`PyType_Slot`: a part of a type."""

    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    """`PyType_Spec`: the description of a type."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basic_size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


def integer_fields(name: str, fields: Sequence[str]) -> Any:
    """Create a base class whose instances have these int64 fields, which are 0 at first."""
    if not IS_AVAILABLE:

        def zero_fields(self: Any) -> None:
            for field in fields:
                setattr(self, field, 0)

        return type(name, (), {"__slots__": tuple(fields), "__init__": zero_fields})
    members = (_Member * (len(fields) + 1))()
    for index, field in enumerate(fields):
        members[index] = _Member(field.encode(), _LONG_LONG, offset_of(fields, field), 0, None)
    slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(members)), _Slot(_END, None))
    length = HEADER_LENGTH + FIELD_LENGTH * len(fields)
    spec = _Spec(f"{__name__}.{name}".encode(), length, 0, _BASE_TYPE, slots)
    _kept.append((members, slots, spec))
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, (ctypes.POINTER(_Spec),)
    return make(ctypes.byref(spec))


def offset_of(fields: Sequence[str], field: str) -> int:
    """Return the offset of a field from the address of its object."""
    return HEADER_LENGTH + FIELD_LENGTH * fields.index(field)
