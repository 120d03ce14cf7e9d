"""Decides when a gap of an unreliable stream is filled: when there is evidence that it was lost.

    gap found ----- later datagram ----- later datagram ----> filled, if two are enough
        `---------------- delay -------------------------> filled, whatever has arrived

Datagrams that overtake others are as frequent as lost ones on many paths. Aeron fills a gap at
once, so every datagram that was overtaken is discarded when it arrives. A later datagram is one
that advances rcv-hwm after it found the gap; the datagram that shows the gap is the first.
These functions change only the image's record and its rows. The time is an argument. See
docs/loss-recovery.md.
"""

from windtunnel.driver.base.arith import I64_MAX
from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image import gap_rows


@kernel
def begin(image, gap, now_ns):
    """Start to wait for the evidence that a new gap was lost."""
    gap.deadline_ns = now_ns + image.fill_delay_ns
    gap.filled_at = I64_MAX
    if image.fill_datagrams > 0:
        # The receiver counts a datagram before it advances rcv-hwm, so the one that shows the gap
        # is counted already.
        gap.filled_at = image.datagram_count + image.fill_datagrams - 1


@kernel
def take_due(image, gaps, log, first_row, now_ns):
    """Make the oldest gap that is to be filled the active gap. It has no frame in it.

    Rows before `first_row` are ignored. Evidence is complete for older gaps first.

    Returns: the row after that of the gap, or 0 if no gap is to be filled
    """
    for row in range(first_row, image.gap_count):
        gap = gaps[row]
        if now_ns - gap.deadline_ns < 0 and image.datagram_count < gap.filled_at:
            return 0
        pages = bytes_at(image.pages_address, image.pages_length)
        end = gap_rows.split(image, gaps, log, pages, row)
        if end == gap.begin:
            continue
        gap.nak_count += 1
        gap_rows.activate(image, gap, end)
        return row + 1
    return 0
