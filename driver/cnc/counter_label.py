"""Counter labels that contain text from clients. They are ASCII, as in Aeron, and limited in
length.

| head ............ | tail |      the end of the head is cut off if the label is too long
"""

from windtunnel.driver.cnc.counters import LABEL_LENGTH_MAX


def fit_label(head: str, tail: str) -> str:
    """Return `head` + `tail`, with the head truncated to make a label of at most LABEL_LENGTH_MAX
    bytes.
    """
    return _ascii(head)[: LABEL_LENGTH_MAX - len(tail)] + _ascii(tail)


def _ascii(text: str) -> str:
    """Replace each non-ASCII character with "?"."""
    return text.encode("ascii", "replace").decode("ascii")
