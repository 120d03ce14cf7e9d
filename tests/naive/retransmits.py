"""Reference implementation of the search for retransmits without a NAK."""


def unrequested(sendings: list[tuple[int, int]], naks: list[tuple[int, int, int]]) -> list[bool]:
    """Return for each (position, time), in order, whether it lacks a NAK (start, end, time)."""
    wrong = []
    for index, (position, time_ns) in enumerate(sendings):
        sent = sum(1 for other, _ in sendings[: index + 1] if other == position)
        requested = sum(1 for start, end, at in naks if start <= position < end and at <= time_ns)
        wrong.append(requested < sent)
    return wrong
