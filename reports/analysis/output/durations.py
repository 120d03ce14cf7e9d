"""Formats durations for people."""


def duration(nanoseconds: float | None) -> str | None:
    """Format a duration with three significant digits and a unit. Returns None for None."""
    if nanoseconds is None:
        return None
    if abs(nanoseconds) >= 999.5e9:
        return f"{nanoseconds / 1e9:,.0f} s"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
