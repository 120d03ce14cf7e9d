"""Counter labels that contain text from clients, limited to ASCII as in Aeron and to a maximum
length.

| head ............ | tail |      the end of the head is cut off if the label is too long
"""

from windtunnel.driver.cnc.counters import LABEL_LENGTH_MAX


def fit_label(head: str, tail: str) -> str:
    """Return a label of at most LABEL_LENGTH_MAX bytes, truncating only its head."""
    return _ascii(head)[: LABEL_LENGTH_MAX - len(tail)] + _ascii(tail)


def _ascii(text: str) -> str:
    """Replace each non-ASCII character with "?"."""
    return text.encode("ascii", "replace").decode("ascii")
