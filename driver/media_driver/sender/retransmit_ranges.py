"""The ranges of a stream to retransmit: those that wait to be sent, and those that were sent
recently, for which further NAKs are ignored.

    begin          sent             end       begin        sent = end
      |#############|................|          |##############|
       sent again    waits for its turn          under way until `time_ns`

Each publication has a row of RANGES_MAX records. The first `count` are in use. They are disjoint,
in ascending order, and each is within one term. A NAK adds only those parts of its range that no
record contains, so NAKs of several receivers, or repeated ones, do not cause further retransmits
until the linger time of the first one ends. See docs/loss-recovery.md.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel

RANGES_MAX = 1024
"""Maximum number of ranges of a publication. It limits memory and time if NAKs are forged. A range
for which there is no free record is not sent again until another NAK requests it."""

RETRANSMIT_RANGE = np.dtype(
    (
        np.record,
        [
            ("begin", "i8"),
            ("end", "i8"),
            ("sent", "i8"),  # position up to which the range was sent again; `begin` at first
            ("time_ns", "i8"),  # it may be sent from then on; or it is under way until then
        ],
    )
)


def make_ranges(publications: int) -> np.recarray:
    """Create an array of zeroed retransmit ranges, RANGES_MAX per publication."""
    return np.zeros(publications * RANGES_MAX, dtype=RETRANSMIT_RANGE).view(np.recarray)


@kernel
def add(ranges, row, count, begin, end, due_ns):
    """Add a requested range to a publication's retransmit ranges, without the parts that they
    already contain.

    Units:   begin, end and the result are positions and bytes; `due_ns` is the time from which the
             parts may be sent
    Returns: (number of ranges, bytes that other ranges contain, whether a record was missing)
    """
    first = row * RANGES_MAX
    index = _first_after(ranges, first, count, begin)
    contained, at = 0, begin
    while at < end:
        part_end = end
        if index < first + count:
            other = ranges[index]
            if other.begin <= at:
                part_end = min(end, other.end)
                contained += part_end - at
                at = part_end
                index += 1
                continue
            part_end = min(end, other.begin)
        if count == RANGES_MAX:
            return count, contained, True
        _insert(ranges, index, first + count, at, part_end, due_ns)
        count += 1
        index += 1
        at = part_end
    return count, contained, False


@kernel
def _first_after(ranges, first, count, position):
    """Return the index of the first range that ends after a position."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if ranges[middle].end > position:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _insert(ranges, index, last, begin, end, due_ns):
    for at in range(last, index, -1):
        ranges[at] = ranges[at - 1]
    rec = ranges[index]
    rec.begin = begin
    rec.end = end
    rec.sent = begin
    rec.time_ns = due_ns


@kernel
def is_due(rec, now_ns):
    """Return whether a range still has bytes to retransmit and its retransmit delay has expired."""
    return rec.sent < rec.end and now_ns - rec.time_ns >= 0


@kernel
def on_sent(rec, position, linger_ns, now_ns):
    """Record that a range was retransmitted up to a position. Returns whether the whole range has
    now been retransmitted.
    """
    rec.sent = position
    if position < rec.end:
        return False
    rec.time_ns = now_ns + linger_ns
    return True


@kernel
def remove_finished(ranges, row, count, lowest, now_ns):
    """Remove ranges whose linger time is over, and ranges whose next byte to send is before
    `lowest`, the lowest position that the log is guaranteed to contain.

    Returns: the number of ranges
    """
    first = row * RANGES_MAX
    kept = first
    for index in range(first, first + count):
        rec = ranges[index]
        is_sent = rec.sent == rec.end
        if (is_sent and now_ns - rec.time_ns >= 0) or (not is_sent and rec.sent < lowest):
            continue
        if kept < index:
            ranges[kept] = ranges[index]
        kept += 1
    return kept - first
