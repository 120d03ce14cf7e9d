"""Compiled kernels that find the first byte at which two byte ranges differ."""

from typing import Any

from windtunnel.driver.kernels.jit import kernel


@kernel
def first_difference(left: Any, left_at: int, right: Any, right_at: int, length: int) -> int:
    """Return the index of the first byte at which two ranges differ, or -1 if they are equal.

    Shapes:  left uint8[n], left_at + length <= n; right uint8[p], repeated indefinitely
    """
    period = len(right)
    right_at %= period
    for index in range(length):
        if left[left_at + index] != right[right_at]:
            return index
        right_at += 1
        if right_at == period:
            right_at = 0
    return -1


@kernel
def first_wrong_message(
    messages: Any, payload: Any, lengths: Any, planned_starts: Any
) -> tuple[int, int]:
    """Return the index of the first message that differs from the plan, and its first wrong byte.

    Shapes:  messages uint8[n], the messages concatenated; payload uint8[p], repeated;
             lengths, planned_starts int64[m]
    Returns: (index of the message, offset of the byte within it), or (-1, -1)
    """
    at = 0
    for message in range(len(lengths)):
        byte = first_difference(messages, at, payload, planned_starts[message], lengths[message])
        if byte >= 0:
            return message, byte
        at += lengths[message]
    return -1, -1


@kernel
def first_differing_pair(
    left: Any, left_at: Any, right: Any, right_at: Any, lengths: Any
) -> tuple[int, int]:
    """Return the first pair of byte ranges that differ, and the first byte at which they differ.

    Shapes:  left uint8[n]; right uint8[p]; left_at, right_at, lengths int64[m]
    Returns: (index of the pair, offset of the byte within its ranges), or (-1, -1)
    """
    for pair in range(len(lengths)):
        for index in range(lengths[pair]):
            if left[left_at[pair] + index] != right[right_at[pair] + index]:
                return pair, index
    return -1, -1
