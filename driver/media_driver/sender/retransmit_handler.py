"""Schedules retransmits: each one is sent after a delay, and further NAKs for its range are ignored
for a linger time.

An action is FREE, DELAYED (the retransmit is not sent yet) or LINGERING (it was sent, and more NAKs
for its range are ignored until a timeout). A unicast stream has one action, which a NAK for a
different range may take over. A group has `max_resend` actions. Source: spec of Aeron 1.53's
retransmit handler.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel

FREE = 0
DELAYED = 1
LINGERING = 2

RESENDS_MAX = 256
"""Maximum value of the channel parameter `max-resend`."""

NO_RESEND = -1
POOL_OVERFLOW = -2

RESEND = np.dtype(
    (
        np.record,
        [
            ("state", "i8"),
            ("term_id", "i8"),
            ("term_offset", "i8"),
            ("length", "i8"),
            ("expiry_ns", "i8"),  # of the delay, or of the linger
        ],
    )
)


def make_resends(publications: int) -> np.recarray:
    """Create an array of unused resend actions, RESENDS_MAX per publication."""
    return np.zeros(publications * RESENDS_MAX, dtype=RESEND).view(np.recarray)


@kernel
def clear(resends, row):
    """Free all resend actions of a new publication, because an earlier publication with the same
    index may have left some of them in use.
    """
    first = row * RESENDS_MAX
    for index in range(first, first + RESENDS_MAX):
        resends[index].state = FREE


@kernel
def assign(resends, row, max_resend, is_group, term_id, term_offset):
    """Return the index of the resend action to use for a NAK whose range begins at `term_offset`.

    Returns: an index into `resends`, NO_RESEND if an action already covers the start, or
             POOL_OVERFLOW if a group has no free action
    """
    first = row * RESENDS_MAX
    count = max_resend if is_group else 1
    free = NO_RESEND
    for index in range(first, first + count):
        rec = resends[index]
        if rec.state == FREE:
            if free == NO_RESEND:
                free = index
        elif (
            rec.term_id == term_id and rec.term_offset <= term_offset < rec.term_offset + rec.length
        ):
            return NO_RESEND
    if free != NO_RESEND:
        return free
    return POOL_OVERFLOW if is_group else first


@kernel
def start(resends, index, term_id, term_offset, length, delay_ns, linger_ns, now_ns):
    """Start a resend action. Returns whether to retransmit its range immediately."""
    rec = resends[index]
    rec.term_id = term_id
    rec.term_offset = term_offset
    rec.length = length
    if delay_ns == 0:
        rec.state = LINGERING
        rec.expiry_ns = now_ns + linger_ns
        return True
    rec.state = DELAYED
    rec.expiry_ns = now_ns + delay_ns
    return False


@kernel
def on_timeout(resends, index, linger_ns, now_ns):
    """Advance a resend action to its next state if its timeout has expired. Returns whether to
    retransmit its range now.
    """
    rec = resends[index]
    if rec.state == FREE or now_ns - rec.expiry_ns < 0:
        return False
    if rec.state == DELAYED:
        rec.state = LINGERING
        rec.expiry_ns = now_ns + linger_ns
        return True
    rec.state = FREE
    return False
