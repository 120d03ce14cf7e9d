"""Rates as text, each in the unit that leaves a digit before the point.

3,100,000 B/s    3.10 MB/s
    4,250 B/s    4.25 kB/s
       40 B/s    40 B/s
"""

from collections.abc import Iterable

_UNITS = ((1e6, "MB/s"), (1e3, "kB/s"))


def rate_unit(rates: Iterable[float]) -> tuple[float, str]:
    """Return the unit for several rates that are shown together, in bytes per second, and its
    name.
    """
    largest = max(rates, default=0.0)
    return next(((size, name) for size, name in _UNITS if largest >= size), (1.0, "B/s"))


def rate_text(bytes_per_s: float, asked_bytes_per_s: float | None = None) -> str:
    """Return a rate as text, such as `3.10 MB/s`, or `3.10 of 4.00 MB/s` if one was requested."""
    unit = rate_unit([bytes_per_s])
    if asked_bytes_per_s is None:
        return f"{_number(bytes_per_s, unit)} {unit[1]}"
    asked_unit = rate_unit([asked_bytes_per_s])
    asked = f"of {_number(asked_bytes_per_s, asked_unit)} {asked_unit[1]}"
    own_unit = "" if unit == asked_unit else f" {unit[1]}"
    return f"{_number(bytes_per_s, unit)}{own_unit} {asked}"


def _number(bytes_per_s: float, unit: tuple[float, str]) -> str:
    digits = 2 if unit[0] > 1 else 0
    return f"{bytes_per_s / unit[0]:,.{digits}f}"
