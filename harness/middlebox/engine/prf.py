"""Random draws that decide which frames a rule affects, made with the keyed generator Philox
4x32-10.

    key      = seed, low and high 32 bits
    counter  = | position or order, low 32 | high 32 | attempt | what |
    what     = rule 8 | stream ordinal 8 | class index 8 | host pair 6 | by order 1 | direction 1

A draw is a pure function of these, so the decision about a frame does not depend on earlier frames:
batching, timing, or additional control frames cannot change it. All arithmetic stays within signed
64 bits, so compiled code and plain Python give the same results.

Source: Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from windtunnel.driver.kernels.jit import kernel

DRAW_BITS = 62
"""Number of bits of a draw, chosen to fit a signed 64-bit integer."""

ROUNDS = 10
_LOW = 0xFFFFFFFF
_MULTIPLIER_0 = 0xD2511F53
_MULTIPLIER_1 = 0xCD9E8D57
_WEYL_0 = 0x9E3779B9
_WEYL_1 = 0xBB67AE85


@kernel
def philox(
    counter_0: int, counter_1: int, counter_2: int, counter_3: int, key_0: int, key_1: int
) -> tuple[int, int, int, int]:
    """Compute one block of the Philox 4x32-10 generator: four random 32-bit words from a four-word
    counter and a two-word key.

    Source: figure 3 of the paper; test vectors from its reference implementation.
    """
    for _ in range(ROUNDS):
        low_0, high_0 = _product(_MULTIPLIER_0, counter_0)
        low_1, high_1 = _product(_MULTIPLIER_1, counter_2)
        counter_0 = high_1 ^ counter_1 ^ key_0
        counter_1 = low_1
        counter_2 = high_0 ^ counter_3 ^ key_1
        counter_3 = low_0
        key_0 = (key_0 + _WEYL_0) & _LOW
        key_1 = (key_1 + _WEYL_1) & _LOW
    return counter_0, counter_1, counter_2, counter_3


@kernel
def draw(seed: int, rule: int, what: int, place: int, attempt: int) -> int:
    """Draw the random number of DRAW_BITS bits that decides whether a rule applies to a frame.

    `what` comes from `subject`; `place` is a position or an order of appearance.
    """
    return draws(seed, rule, what, place, attempt)[0]


@kernel
def draws(seed: int, rule: int, what: int, place: int, attempt: int) -> tuple[int, int]:
    """Draw two independent random numbers of DRAW_BITS bits. The first one equals the result of
    `draw`.
    """
    first, second, third, fourth = philox(
        place & _LOW,
        (place >> 32) & _LOW,
        attempt & _LOW,
        (rule << 24 | what) & _LOW,
        seed & _LOW,
        (seed >> 32) & _LOW,
    )
    return first << 30 | second >> 2, third << 30 | fourth >> 2


@kernel
def subject(link: int, class_index: int, stream_ordinal: int, by_order: int) -> int:
    """Combine a frame's link direction, class and stream into a 24-bit integer that selects the
    frame's random numbers.

    The last bit of `link` is the direction. `by_order` is 1 for a frame without a position.
    """
    pair, way = link >> 1, link & 1
    return (stream_ordinal & 0xFF) << 16 | class_index << 8 | pair << 2 | by_order << 1 | way


@kernel
def _product(left: int, right: int) -> tuple[int, int]:
    """Multiply two 32-bit words. Returns the low and the high word of the 64-bit product.

    The product of two 32-bit words does not fit a signed 64-bit integer, so it is computed in
    halves.
    """
    low_part = left * (right & 0xFFFF)
    high_part = left * (right >> 16) + (low_part >> 16)
    return (high_part << 16 | low_part & 0xFFFF) & _LOW, high_part >> 16
