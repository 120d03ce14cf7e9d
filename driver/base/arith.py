"""Integer arithmetic with the same results in compiled kernels and in plain Python."""

from windtunnel.driver.kernels.jit import kernel

I32_MIN = -(1 << 31)
I32_MAX = (1 << 31) - 1
I64_MAX = (1 << 63) - 1
I64_MIN = -I64_MAX - 1


@kernel
def wrap_i32(value):
    """Wrap an integer to the signed 32-bit range. Term ids wrap in this way when they overflow.

    A cast would cause a warning in plain Python. Masking works in compiled kernels too.
    """
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@kernel
def align(value, alignment):
    """Round an integer up to a multiple of `alignment`, which must be a power of two."""
    return (value + (alignment - 1)) & ~(alignment - 1)


@kernel
def is_power_of_two(value):
    return value > 0 and (value & (value - 1)) == 0


@kernel
def bits_to_shift(power):
    """Return the exponent of a power of two, for example 16 for 65536."""
    bits = 0
    while (1 << bits) < power:
        bits += 1
    return bits
