"""Quantities as scenarios write them: a number and a unit, never a bare number.

    "64MiB" -> bytes     "5ms" -> nanoseconds     "2%" -> parts per billion
    "200Mbit/s" -> bits per second     "20MiB/s" -> bytes per second

Everything becomes an exact integer, since these values take part in decisions that must be the
same on every machine. A quantity finer than its integer is refused rather than rounded.
"""

import re
from decimal import Decimal

BYTES: dict[str, int] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
NANOSECONDS: dict[str, int] = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
}
BITS_PER_SECOND: dict[str, int] = {
    "bit/s": 1,
    "kbit/s": 1_000,
    "Mbit/s": 1_000_000,
    "Gbit/s": 1_000_000_000,
}
BYTES_PER_SECOND: dict[str, int] = {f"{unit}/s": scale for unit, scale in BYTES.items()}
BILLION = 1_000_000_000
"""Parts of a share: 100% is this many."""

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")


def parse_bytes(text: object) -> int:
    """The bytes in a text such as "64MiB"."""
    return _parse(text, BYTES, "a size", "64MiB")


def parse_duration(text: object) -> int:
    """The nanoseconds in a text such as "5ms"."""
    return _parse(text, NANOSECONDS, "a duration", "5ms")


def parse_share(text: object) -> int:
    """The parts per billion in a text such as "2%"; more than 0% and at most 100%."""
    parts = _parse(text, {"%": BILLION // 100}, "a share", "2%")
    if not 0 < parts <= BILLION:
        raise ValueError(f"expected a share above 0% and up to 100%, found {text!r}")
    return parts


def parse_probability(text: object) -> int:
    """The parts per billion in a text such as "0%"; at most 100%."""
    if isinstance(text, str) and re.fullmatch(r"0+(\.0+)?\s*%", text.strip()):
        return 0
    return parse_share(text)


def parse_rate(text: object) -> int:
    """The bits per second in a text such as "200Mbit/s"."""
    return _parse(text, BITS_PER_SECOND, "a rate", "200Mbit/s")


def parse_byte_rate(text: object) -> int:
    """The bytes per second in a text such as "20MiB/s"."""
    return _parse(text, BYTES_PER_SECOND, "a rate", "20MiB/s")


def format_byte_rate(bytes_per_s: int) -> str:
    """A rate of bytes in the largest unit that keeps it whole."""
    return _format(bytes_per_s, BYTES_PER_SECOND)


def format_rate(bits_per_s: int) -> str:
    """A rate in the largest unit that keeps it whole."""
    return _format(bits_per_s, BITS_PER_SECOND)


def format_duration(duration_ns: int) -> str:
    """A duration in the largest unit that keeps it whole."""
    return _format(duration_ns, NANOSECONDS)


def format_bytes(length_bytes: int) -> str:
    """A size in the largest unit that keeps it whole."""
    return _format(length_bytes, BYTES)


def format_share(share_ppb: int) -> str:
    """A share in per cent, without loss."""
    percent = Decimal(share_ppb) * 100 / BILLION
    return f"{percent.normalize():f}%"


def _parse(text: object, units: dict[str, int], what: str, example: str) -> int:
    match = _QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        wanted = f"{what} with a unit ({', '.join(units)}), such as {example}"
        raise ValueError(f"expected {wanted}, found {text!r}")
    value = Decimal(match[1]) * units[match[2]]
    if value != int(value):
        raise ValueError(f"{text!r} is finer than can be kept: expected a whole number of parts")
    return int(value)


def _format(value: int, units: dict[str, int]) -> str:
    fitting = [(scale, name) for name, scale in units.items() if value % scale == 0]
    scale, name = max(fitting) if value else min(fitting)
    return f"{value // scale}{name}"
