"""The type of messages that can be offered: any bytes-like object.

Kernels are stored for arrays of uint8 and int64, and for integers. For any other type, a call would
first compile one of its own, which takes longer than a client may be silent.
"""

from operator import index

import numpy as np

Message = bytes | bytearray | memoryview | np.ndarray


def as_bytes(message: Message) -> np.ndarray:
    """Return a bytes-like object as uint8[n], copied only if it is not contiguous."""
    if isinstance(message, np.ndarray):
        return np.ascontiguousarray(message).reshape(-1).view(np.uint8)
    if isinstance(message, memoryview) and not message.c_contiguous:
        message = message.tobytes()
    return np.frombuffer(message, np.uint8)


def as_writable_bytes(message: Message) -> np.ndarray:
    """Return a bytes-like object as uint8[n] like `as_bytes`, copied also if it is read-only."""
    array = as_bytes(message)
    return array if array.flags.writeable else array.copy()


def as_integer(value: int) -> int:
    """Return an integer of any type as int. Raises TypeError for other values, such as floats, and
    ValueError for an integer of more than 64 bits.
    """
    integer = int(index(value))
    if not -(1 << 63) <= integer < 1 << 63:
        raise ValueError(f"expected an integer of 64 bits, found {integer}")
    return integer


def as_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return integers as int64[n], copied only if they are not. Raises TypeError for others."""
    array = np.asarray(lengths)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"lengths: expected integers, found {array.dtype}")
    return np.ascontiguousarray(array, np.int64)
