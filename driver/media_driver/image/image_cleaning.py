"""Zeroes the slots of an image's log that readers, or the search for gaps, are about to look at.

    clean position    begin            end
       |  0 0 0 0 0 0 0 |== datagram ==| 0 |  old frames
       `-- a new gap ---'              `---- the next slot

Each term of a log is used again after two others, and has old frames until new ones replace them.
A reader stops at a slot that is empty, and a gap is one of empty slots. So the receiver zeroes the
slot after a datagram, and what it leaves out before it. Everything else is overwritten. The
conductor need not zero consumed terms, as it does with publications, whose clients write to them.

The receiver has the clean position to itself, unlike rcv-hwm, which is in shared memory.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import position
from windtunnel.driver.media_driver.image import written_pages

_FIRST_WORD = 8


@kernel
def is_beyond(rec, begin):
    """Return whether nothing was received at or after a position."""
    return begin >= rec.clean_position


@kernel
def prepare(rec, begin, end):
    """Zero what becomes readable when frames from position `begin` to `end` are inserted. Both are
    equal for a heartbeat, which says that frames up to there were sent.

    Memory:  the caller publishes the frames, or rcv-hwm, with release
    """
    if end < rec.clean_position or begin == end == rec.clean_position:
        return
    log = bytes_at(rec.log_address, rec.log_length)
    pages = bytes_at(rec.pages_address, rec.pages_length)
    # A datagram that begins before the clean position is dropped if its slot is in use.
    gap_end = begin if is_beyond(rec, begin) else end
    if gap_end > rec.clean_position:
        _clean(rec, log, pages, gap_end)
    written_pages.clean(log, pages, _place(rec, end), _FIRST_WORD)
    rec.clean_position = end


@kernel
def _clean(rec, log, pages, end):
    """Zero the log from the clean position to `end`, and the slot there."""
    # More than a window is possible only if a client has damaged its counters.
    at = max(rec.clean_position, end - 2 * rec.term_length)
    while at < end:
        length = min(end - at, rec.term_length - position.term_offset(at, rec.term_length))
        written_pages.clean(log, pages, _place(rec, at), length)
        at += length
    written_pages.clean(log, pages, _place(rec, end), _FIRST_WORD)


@kernel
def _place(rec, at):
    """Return the offset of a position in the log."""
    return position.index(at, rec.bits) * rec.term_length + position.term_offset(
        at, rec.term_length
    )
