"""Formats durations for people."""


def duration(nanoseconds: float | None) -> str | None:
    """Format a duration with three significant digits and a unit. Returns None for None."""
    if nanoseconds is None:
        return None
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
