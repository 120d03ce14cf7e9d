"""Labels of counters that clients make up: of ASCII, as Aeron's own, and never too long.

| head ............ | tail |      what does not fit is cut off the end of the head
"""

from windtunnel.driver.cnc.counters import LABEL_LENGTH_MAX


def fitting(head: str, tail: str) -> str:
    """A label of at most LABEL_LENGTH_MAX bytes that keeps its tail, which is short."""
    return _ascii(head)[: LABEL_LENGTH_MAX - len(tail)] + _ascii(tail)


def _ascii(text: str) -> str:
    """The text with a ? for every other letter."""
    return text.encode("ascii", "replace").decode("ascii")
