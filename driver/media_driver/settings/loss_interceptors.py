"""What the loss interceptors of the C driver are told: which frames a receiver shall pretend lost.

    rate=0.05|seed=-7|recv-msg-mask=0x2                          loss
    term-id=0|term-offset=1024|length=4096                       fixed-loss
    term-id=0|gap-radix=8192|gap-length=1408|total-gaps=10       multi-gap-loss

The text of one setting, `key=value` pairs joined by `|`, read into numbers; what is done with them
is the receiver's. An unknown key is refused. Source: the C driver's interceptors, Aeron 1.53.
"""

import math
import re
from dataclasses import dataclass

from windtunnel.driver.base.arith import I32_MAX, I32_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

LOSS = "loss"
FIXED_LOSS = "fixed-loss"
MULTI_GAP_LOSS = "multi-gap-loss"

_U64_MASK = (1 << 64) - 1
_TYPE_MASK_MAX = (1 << 32) - 1
_HEXADECIMAL = re.compile(r"(0x)?[0-9a-f]{1,16}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RandomLoss:
    """Each frame of a type in the mask is lost with one probability."""

    rate: float = 0.0
    seed: int = 0
    """64 bits without a sign, of which the low 48 count."""
    message_type_mask: int = 0
    """Bit 1 is DATA, bit n the frame type n."""

    def __str__(self) -> str:
        mask = f"{self.message_type_mask:#x}"
        return f"rate={self.rate}|seed={self.seed}|recv-msg-mask={mask}"


@dataclass(frozen=True, slots=True)
class FixedLoss:
    """The first frames over one range of one term are lost, once in each stream."""

    term_id: int = 0
    term_offset: int = -1
    """-1 is no loss."""
    length: int = 0

    def __str__(self) -> str:
        if self.term_offset < 0:
            return ""
        return f"term-id={self.term_id}|term-offset={self.term_offset}|length={self.length}"


@dataclass(frozen=True, slots=True)
class MultiGapLoss:
    """One gap of one length at every multiple of the radix, once in each stream."""

    term_id: int = 0
    gap_radix: int = 0
    """0 is no loss; a power of two is meant, and the next one is taken."""
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
    """Read the arguments of `loss`."""
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
            f"{setting}={text}: expected recv-msg-mask to be hexadecimal, at most 0xffffffff"
        )
    return RandomLoss(rate, seed & _U64_MASK, int(mask_text, 16))


def parse_fixed_loss(setting: str, text: str) -> FixedLoss:
    """Read the arguments of `fixed-loss`; all three are needed."""
    term_id, offset, length = _numbers(setting, text, ("term-id", "term-offset", "length"))
    return FixedLoss(term_id, offset, length)


def parse_multi_gap_loss(setting: str, text: str) -> MultiGapLoss:
    """Read the arguments of `multi-gap-loss`; all four are needed."""
    names = ("term-id", "gap-radix", "gap-length", "total-gaps")
    term_id, radix, length, count = _numbers(setting, text, names)
    if radix == 0:
        raise ConfigurationError(f"{setting}={text}: expected gap-radix to be at least 1")
    return MultiGapLoss(term_id, radix, length, count)


def _numbers(setting: str, text: str, names: tuple[str, ...]) -> list[int]:
    """One number for each name; all but the term id are positions or lengths."""
    pairs = _pairs(setting, text, names)
    missing = [name for name in names if name not in pairs]
    if missing:
        raise ConfigurationError(f"{setting}={text}: expected {', '.join(missing)} as well")
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
