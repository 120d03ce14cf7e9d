"""The int objects that native offers return.

To create an int and to free it again takes longer than to write a short message. So the last int is
kept, and an int that no one else refers to any more gets the next position: nobody can tell it from
a new one. An int that the caller kept stays as it is.

The fields of an int are not part of Python's C API. `is_reusable` checks at run time whether they
are where this module expects them. Otherwise each offer returns a new int.
"""

import ctypes
import sys

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import bytes_at, get_i32, get_i64, put_i32, put_i64
from windtunnel.driver.kernels.jit import kernel

_REFERENCES, _FIRST_DIGIT, _SECOND_DIGIT = 0, 24, 28
_INT_LENGTH = 32
"""Length in bytes of an int of two digits."""
DIGIT_BITS = 30
_DIGIT = (1 << DIGIT_BITS) - 1
_SHARED_MAX = 1 << 10
"""Python shares smaller ints, of which each exists once."""
_TWO_DIGITS_MAX = (1 << 2 * DIGIT_BITS) - 1


def _half(value: int, offset: int) -> int:
    return ctypes.c_uint32.from_address(id(value) + offset).value


def is_reusable() -> bool:
    """Return whether this version of Python has ints with the expected fields."""
    information = sys.int_info
    if (information.bits_per_digit, information.sizeof_digit) != (DIGIT_BITS, 4):
        return False
    if (int.__basicsize__, int.__itemsize__) != (_FIRST_DIGIT, 4):
        return False
    # Parsed at run time, because the compiler makes constants immortal.
    short, long = int("123456789"), int(str((987 << DIGIT_BITS) + 654))
    first, references = _half(long, _FIRST_DIGIT), _half(long, _REFERENCES)
    kept = [long]
    is_known = _half(short, _FIRST_DIGIT) == short and first == 654
    is_known = is_known and _half(long, _SECOND_DIGIT) == 987
    return is_known and _half(kept[0], _REFERENCES) == references + 1


@kernel
def int_of(fields, kept_at, high_at, value):
    """Return an int with this value.

    At the offset `kept_at` in `fields` is the int that was returned last, or 0, and at `high_at`
    whether it has two digits.
    Returns: a new reference, or 0 after an exception was set
    """
    if value <= _SHARED_MAX or value > _TWO_DIGITS_MAX:
        return api.int_of(value)
    kept, high = get_i64(fields, kept_at), value >> DIGIT_BITS
    has_high = 1 if high != 0 else 0
    if kept != 0:
        digits = bytes_at(kept, _INT_LENGTH)
        # The number of digits stays the same, because a field of the int depends on it.
        if get_i32(digits, _REFERENCES) == 1 and get_i64(fields, high_at) == has_high:
            put_i32(digits, _FIRST_DIGIT, value & _DIGIT)
            if high != 0:
                put_i32(digits, _SECOND_DIGIT, high)
            api.retain(kept)
            return kept
        api.release(kept)
    made = api.int_of(value)
    put_i64(fields, kept_at, made)
    put_i64(fields, high_at, has_high)
    if made != 0:
        api.retain(made)
    return made
