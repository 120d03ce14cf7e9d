"""Settings of the loss interceptors, which drop received frames as in the C driver.

    rate=0.05|seed=-7|recv-msg-mask=0x2                          loss
    term-id=0|term-offset=1024|length=4096                       fixed-loss
    term-id=0|gap-radix=8192|gap-length=1408|total-gaps=10       multi-gap-loss

A setting is a list of `key=value` pairs separated by `|`. Unknown keys are refused.
`agent.loss_interceptor` drops the frames. Source: the C driver's interceptors, Aeron 1.53.
"""

import math
import re
from typing import NamedTuple

from windtunnel.driver.base.arith import I32_MAX, I32_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

LOSS = "loss"
FIXED_LOSS = "fixed-loss"
MULTI_GAP_LOSS = "multi-gap-loss"

_U64_MASK = (1 << 64) - 1
_TYPE_MASK_MAX = (1 << 32) - 1
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-f]{1,16}", re.ASCII | re.IGNORECASE)


class RandomLoss(NamedTuple):
    """Settings of the `loss` interceptor. It drops frames whose type is in the mask, each with the
    same probability.
    """

    rate: float = 0.0
    seed: int = 0
    """Seed of the random numbers: an unsigned 64-bit number. Only its low 48 bits are used."""
    message_type_mask: int = 0
    """Mask of the frame types to drop, where bit n is frame type n. Bit 1 is DATA."""

    def __str__(self) -> str:
        mask = f"{self.message_type_mask:#x}"
        return f"rate={self.rate}|seed={self.seed}|recv-msg-mask={mask}"


class FixedLoss(NamedTuple):
    """Settings of the `fixed-loss` interceptor. Once per stream, it drops the frames in a range of
    one term. Their retransmits are not dropped.
    """

    term_id: int = 0
    term_offset: int = -1
    """Term offset at which the loss starts, or -1 to disable the loss."""
    length: int = 0

    def __str__(self) -> str:
        if self.term_offset < 0:
            return ""
        return f"term-id={self.term_id}|term-offset={self.term_offset}|length={self.length}"


class MultiGapLoss(NamedTuple):
    """Settings of the `multi-gap-loss` interceptor. Once per stream, it drops the frames that
    overlap gaps of equal length at equal distances in one term.
    """

    term_id: int = 0
    gap_radix: int = 0
    """Distance between gaps, or 0 to disable the loss. It is rounded up to a power of two."""
    gap_length: int = 0
    total_gaps: int = 0

    def __str__(self) -> str:
        if self.gap_radix == 0:
            return ""
        return (
            f"term-id={self.term_id}|gap-radix={self.gap_radix}"
            f"|gap-length={self.gap_length}|total-gaps={self.total_gaps}"
        )


def parse_random_loss(setting: str, text: str) -> RandomLoss:
    """Parse the arguments of the `loss` interceptor. Raises ConfigurationError if an argument is
    invalid.
    """
    pairs = _pairs(setting, text, ("rate", "seed", "recv-msg-mask"))
    try:
        rate = float(pairs.get("rate", "0"))
    except ValueError:
        rate = math.nan
    if not 0.0 <= rate <= 1.0:
        raise ConfigurationError(f"{setting}={text}: expected rate to be a number from 0 to 1")
    seed = uri_value.parse_int64(f"{setting} seed", pairs.get("seed", "0"), maximum=_U64_MASK)
    mask_text = pairs.get("recv-msg-mask", "0")
    if not _HEXADECIMAL.fullmatch(mask_text) or int(mask_text, 16) > _TYPE_MASK_MAX:
        raise ConfigurationError(
            f"{setting}={text}: expected recv-msg-mask to be a hexadecimal number up to 0xffffffff"
        )
    return RandomLoss(rate, seed & _U64_MASK, int(mask_text, 16))


def parse_fixed_loss(setting: str, text: str) -> FixedLoss:
    """Parse the arguments of the `fixed-loss` interceptor. All three are required."""
    term_id, offset, length = _numbers(setting, text, ("term-id", "term-offset", "length"))
    return FixedLoss(term_id, offset, length)


def parse_multi_gap_loss(setting: str, text: str) -> MultiGapLoss:
    """Parse the arguments of the `multi-gap-loss` interceptor. All four are required."""
    names = ("term-id", "gap-radix", "gap-length", "total-gaps")
    term_id, radix, length, count = _numbers(setting, text, names)
    if radix == 0:
        raise ConfigurationError(f"{setting}={text}: expected gap-radix to be at least 1")
    return MultiGapLoss(term_id, radix, length, count)


def _numbers(setting: str, text: str, names: tuple[str, ...]) -> list[int]:
    """Parse the `key=value` arguments of a loss interceptor into one number for each key. Only the
    term id may be negative.
    """
    pairs = _pairs(setting, text, names)
    missing = [name for name in names if name not in pairs]
    if missing:
        raise ConfigurationError(f"{setting}={text}: missing {', '.join(missing)}")
    return [
        uri_value.parse_int64(
            f"{setting} {name}", pairs[name], I32_MIN if name == "term-id" else 0, I32_MAX
        )
        for name in names
    ]


def _pairs(setting: str, text: str, names: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for piece in text.split("|"):
        name, mark, value = piece.partition("=")
        if not mark or not value or name not in names:
            raise ConfigurationError(
                f"{setting}={text}: expected {'=..|'.join(names)}=.., found {piece!r}"
            )
        pairs[name] = value
    return pairs
