"""Integer arithmetic that behaves alike in a kernel and in plain Python."""

from windtunnel.driver.kernels.jit import kernel

I32_MIN = -(1 << 31)
I32_MAX = (1 << 31) - 1
I64_MAX = (1 << 63) - 1
I64_MIN = -I64_MAX - 1


@kernel
def wrap_i32(value):
    """Reduce to 32 bits, read as signed: how term ids move past the largest int.

    A cast would do this in a kernel but warn in Python; masking does it in both.
    """
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@kernel
def align(value, alignment):
    """Round up to a multiple of `alignment`, which is a power of two."""
    return (value + (alignment - 1)) & ~(alignment - 1)


@kernel
def is_power_of_two(value):
    return value > 0 and (value & (value - 1)) == 0


@kernel
def bits_to_shift(power):
    """The exponent of a power of two: 65536 gives 16."""
    bits = 0
    while (1 << bits) < power:
        bits += 1
    return bits
