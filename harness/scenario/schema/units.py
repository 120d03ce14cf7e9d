"""Quantities with units, as written in scenarios.

    "64MiB" -> bytes     "5ms" -> nanoseconds     "2%" -> parts per billion
    "200Mbit/s" -> bits per second     "20MiB/s" -> bytes per second
    "20000 msg/s" -> messages per second

All quantities are converted to exact integers, because decisions depend on them and must be the
same on every machine. A quantity that is not a whole number of the base unit is an error and is
never rounded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
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
MESSAGES_PER_SECOND: dict[str, int] = {"msg/s": 1}
BILLION = 1_000_000_000
"""100% in parts per billion."""

BYTES_MAX = 1 << 40
"""Maximum size or position in bytes: 1024GiB."""
DURATION_NS_MAX = 7 * 24 * 3600 * BILLION
"""Maximum duration in nanoseconds: one week."""
BITS_PER_SECOND_MAX = 1000 * BILLION
"""Maximum bit rate: 1000Gbit/s."""
BYTES_PER_SECOND_MAX = BYTES_MAX
"""Maximum byte rate: 1024GiB/s."""
MESSAGES_PER_SECOND_MAX = BILLION
"""Maximum rate in messages: 1000000000msg/s."""
DIGITS_MAX = 64
"""Maximum number of digits before and after the decimal point."""

_QUANTITY = re.compile(r"(\d+)(?:\.(\d+))?\s*([A-Za-z%/]*)", re.ASCII)


@dataclass(frozen=True)
class _Kind:
    """A kind of quantity with its units, its upper limit, and an example for error messages."""

    what: str
    units: Mapping[str, int]
    limit: int
    example: str


_SIZE = _Kind("a size", BYTES, BYTES_MAX, "64MiB")
_DURATION = _Kind("a duration", NANOSECONDS, DURATION_NS_MAX, "5ms")
_SHARE = _Kind("a share", {"%": BILLION // 100}, BILLION, "2%")
_RATE = _Kind("a rate", BITS_PER_SECOND, BITS_PER_SECOND_MAX, "200Mbit/s")
_BYTE_RATE = _Kind("a rate", BYTES_PER_SECOND, BYTES_PER_SECOND_MAX, "20MiB/s")
_MESSAGE_RATE = _Kind("a rate", MESSAGES_PER_SECOND, MESSAGES_PER_SECOND_MAX, "20000 msg/s")


def parse_bytes(text: object) -> int:
    """Parse a size such as "64MiB" into bytes."""
    return _parse(text, _SIZE)


def parse_duration(text: object) -> int:
    """Parse a duration such as "5ms" into nanoseconds."""
    return _parse(text, _DURATION)


def parse_signed_bytes(text: object) -> int:
    """Parse a size such as "64MiB" or "-64MiB" into bytes."""
    return _parse(text, _SIZE, is_signed=True)


def parse_signed_duration(text: object) -> int:
    """Parse a duration such as "5ms" or "-5ms" into nanoseconds."""
    return _parse(text, _DURATION, is_signed=True)


def parse_share(text: object) -> int:
    """Parse a share such as "2%" into parts per billion. It must be above 0% and at most 100%."""
    parts = _parse(text, _SHARE)
    if parts == 0:
        raise ValueError(f"expected a share above 0% and at most 100%, found {_found(text)}")
    return parts


def parse_probability(text: object) -> int:
    """Parse a share such as "0%" into parts per billion. It must be at most 100%."""
    return _parse(text, _SHARE)


def parse_rate(text: object) -> int:
    """Parse a bit rate such as "200Mbit/s" into bits per second."""
    return _parse(text, _RATE)


def parse_byte_rate(text: object) -> int:
    """Parse a byte rate such as "20MiB/s" into bytes per second."""
    return _parse(text, _BYTE_RATE)


def is_message_rate(value: object) -> bool:
    """Return whether a value is a string with the unit of messages per second."""
    return isinstance(value, str) and value.strip().endswith(tuple(MESSAGES_PER_SECOND))


def parse_message_rate(text: object) -> int:
    """Parse a rate such as "20000 msg/s" into messages per second."""
    return _parse(text, _MESSAGE_RATE)


def format_byte_rate(bytes_per_s: int) -> str:
    """Format a byte rate in the largest unit that gives an integer."""
    return _format(bytes_per_s, BYTES_PER_SECOND)


def format_rate(bits_per_s: int) -> str:
    """Format a bit rate in the largest unit that gives an integer."""
    return _format(bits_per_s, BITS_PER_SECOND)


def format_duration(duration_ns: int) -> str:
    """Format a duration in the largest unit that gives an integer."""
    return _format(duration_ns, NANOSECONDS)


def format_bytes(length_bytes: int) -> str:
    """Format a size in the largest unit that gives an integer."""
    return _format(length_bytes, BYTES)


def format_share(share_ppb: int) -> str:
    """Format a share as a percentage, without rounding."""
    percent = Decimal(share_ppb) * 100 / BILLION
    return f"{percent.normalize():f}%"


def shown(text: str) -> str:
    """Return a string as shown in error messages: control characters are escaped, and a long string
    is cut off.
    """
    printable = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return printable if len(printable) <= DIGITS_MAX else f"{printable[:DIGITS_MAX]}..."


def _parse(text: object, kind: _Kind, *, is_signed: bool = False) -> int:
    """Parse a quantity. `is_signed` permits a minus sign. Raises ValueError."""
    sign = -1 if is_signed and isinstance(text, str) and text.startswith("-") else 1
    match = _QUANTITY.fullmatch(text[sign < 0 :].strip()) if isinstance(text, str) else None
    if match is None or match[3] not in kind.units:
        raise ValueError(_not_one(text, kind, is_signed=is_signed))
    whole, fraction, unit = match[1], match[2] or "", match[3]
    if len(whole) > DIGITS_MAX:
        raise ValueError(_too_much(text, kind, sign))
    if len(fraction) > DIGITS_MAX:
        expected = f"at most {DIGITS_MAX} digits after the decimal point"
        raise ValueError(f"expected {expected}, found {_found(text)}")
    scale: int = 10 ** len(fraction)
    value, rest = divmod(int(whole + fraction) * kind.units[unit], scale)
    if value > kind.limit or (value == kind.limit and rest):
        raise ValueError(_too_much(text, kind, sign))
    if rest:
        raise ValueError(f"expected a whole number of the smallest unit, found {_found(text)}")
    return sign * value


def _not_one(text: object, kind: _Kind, *, is_signed: bool) -> str:
    """Return the error for a value that is not a quantity of this kind."""
    example = f"{kind.example} or -{kind.example}" if is_signed else kind.example
    expected = f"{kind.what} with a unit ({', '.join(kind.units)}), such as {example}"
    sign = text.strip()[:1] if isinstance(text, str) else ""
    hint = ": write it without the plus sign" if sign == "+" else ""
    if sign == "-" and not is_signed:
        hint = ": it must not be negative"
    return f"expected {expected}, found {_found(text)}{hint}"


def _too_much(text: object, kind: _Kind, sign: int) -> str:
    if kind is _SHARE:
        return f"expected a share above 0% and at most 100%, found {_found(text)}"
    limit = _format(kind.limit, kind.units)
    bound = f"at most {limit}" if sign > 0 else f"at least -{limit}"
    return f"expected {kind.what} of {bound}, found {_found(text)}"


def _found(text: object) -> str:
    """Return a value as shown in error messages: a long string is cut off."""
    if isinstance(text, dict | list):
        return "a table" if isinstance(text, dict) else "a list"
    if isinstance(text, str) and len(text) > DIGITS_MAX:
        return f"{text[:DIGITS_MAX]!r}... ({len(text)} characters)"
    return repr(text)


def _format(value: int, units: Mapping[str, int]) -> str:
    fitting = [(scale, name) for name, scale in units.items() if value % scale == 0]
    scale, name = max(fitting) if value else min(fitting)
    return f"{value // scale}{name}"
