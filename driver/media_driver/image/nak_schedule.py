"""Schedules the NAKs for the open gaps of an image.

    found ---- delay ----> NAK ---- retry delay ----> NAK ---- twice the delay ----> NAK

The delay until a retry is the measured time from a NAK to its repair, smoothed, plus four times its
deviation (RFC 6298), or at least a MARGIN_SHARE of it. It doubles after each NAK for the same gap,
up to RETRY_NS_MAX, and the configured retry delay is its minimum. When a packet of the stream ends
a silence, the NAKs before are likely to have been lost with all else, and the doublings begin
again. Aeron has only `loss_detector`. These functions change only the image's record and its rows.
The time is an argument. See docs/loss-recovery.md.
"""

from windtunnel.driver.base.atomics import bytes_at
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image import gap_rows, nak_delay, smoothed_time

INITIAL_REPAIR_NS = 333_000_000
"""Repair time assumed until one is measured: the initial round-trip time of QUIC (RFC 9002)."""

MARGIN_SHARE = 16
"""Divisor of the smoothed repair time: a retry is at least this part of it later. A sender of ours
ignores NAKs for up to half of this part longer than a round trip, and the deviation of a receiver,
which measures each gap, soon disappears on a path without jitter."""

BACKOFFS_MAX = 6
"""Maximum number of doublings of the retry delay."""

RETRY_NS_MAX = 5_000_000_000
"""Maximum of a doubled retry delay: half of Aeron's image liveness timeout. After measurements that
a pause or an attack has made long, retries would otherwise be minutes apart."""

SILENCE_NS = 250_000_000
"""Minimum time without a packet of the stream that is a silence: more than two heartbeats, which an
idle sender sends every 100 ms."""


@kernel
def take_due(image, gaps, log, first_row, now_ns):
    """Make the oldest gap with a due NAK the active gap, and schedule the gap's next NAK.

    Rows before `first_row` are ignored. The active gap has no frame in it.

    Returns: the row after that of the gap, or 0 if no NAK is due
    """
    for row in range(first_row, image.gap_count):
        gap = gaps[row]
        if now_ns - gap.deadline_ns < 0:
            continue
        pages = bytes_at(image.pages_address, image.pages_length)
        end = gap_rows.split(image, gaps, log, pages, row)
        if end == gap.begin:
            continue
        gap.nak_count += 1
        gap.naks_in_row += 1
        if gap.nak_count == 1:
            gap.first_nak_ns = now_ns
        gap.deadline_ns = now_ns + _retry_delay_ns(image, gap)
        gap_rows.activate(image, gap, end)
        return row + 1
    return 0


@kernel
def on_progress(image, gap, now_ns):
    """Measure the time to the first repair of a gap, and restart its retry delay."""
    if gap.nak_count == 0:
        return
    # A repair of a gap with several NAKs may answer any of them, so it is not measured; but the
    # first measurement may be too long, because it replaces an assumption.
    if gap.first_nak_ns != gap_rows.NOT_MEASURED and (gap.nak_count == 1 or image.repair_ns == 0):
        image.repair_ns, image.repair_deviation_ns = smoothed_time.smooth(
            image.repair_ns, image.repair_deviation_ns, now_ns - gap.first_nak_ns
        )
    gap.first_nak_ns = gap_rows.NOT_MEASURED
    gap.deadline_ns = max(gap.deadline_ns, now_ns + _retry_delay_ns(image, gap))


@kernel
def on_packet(image, gaps, packet_ns):
    """Let the doublings of all retry delays begin again if a packet has ended a silence.

    Units: `packet_ns` is when the last packet of the stream arrived
    """
    silence_ns = packet_ns - image.seen_packet_ns
    image.seen_packet_ns = packet_ns
    if silence_ns < SILENCE_NS:
        return
    once_ns = _minimum_ns(image, _repair_ns(image))
    for row in range(image.gap_count):
        gap = gaps[row]
        if gap.naks_in_row > 0:
            gap.deadline_ns += once_ns - _minimum_ns(image, _doubled_ns(image, gap))
            gap.naks_in_row = 0


@kernel
def on_first_measurement(image, gaps, now_ns):
    """Replace the assumed repair time by the measured one, if it is shorter, in the deadlines of
    all gaps that were requested.
    """
    repair_ns = _repair_ns(image)
    for row in range(image.gap_count):
        gap = gaps[row]
        if gap.nak_count == 0 or repair_ns >= INITIAL_REPAIR_NS:
            continue
        backoffs = _backoffs(gap)
        gap.deadline_ns -= _minimum_ns(image, _backed_off_ns(INITIAL_REPAIR_NS, backoffs))
        gap.deadline_ns += _minimum_ns(image, _backed_off_ns(repair_ns, backoffs))
        if gap.first_nak_ns == gap_rows.NOT_MEASURED:
            # A frame of this gap has just arrived, which restarts its retry delay.
            gap.deadline_ns = max(gap.deadline_ns, now_ns + _minimum_ns(image, repair_ns))


@kernel
def _retry_delay_ns(image, gap):
    """Return the delay until the next NAK for a gap."""
    # nak_delay has a backoff of its own, which depends on this field.
    image.gap_naks = 0
    delay_ns = _minimum_ns(image, _doubled_ns(image, gap))
    if image.nak_is_random:
        # The random part spreads the NAKs of a group's receivers, so that one is sent first.
        return delay_ns + nak_delay.next_delay_ns(image, True)
    return delay_ns


@kernel
def _doubled_ns(image, gap):
    return _backed_off_ns(_repair_ns(image), _backoffs(gap))


@kernel
def _backed_off_ns(repair_ns, backoffs):
    return max(repair_ns, min(repair_ns << backoffs, RETRY_NS_MAX))


@kernel
def _backoffs(gap):
    """Return how often the retry delay of a gap has doubled."""
    return min(max(gap.naks_in_row - 1, 0), BACKOFFS_MAX)


@kernel
def _repair_ns(image):
    """Return the time within which a repair is expected, without the doublings of retries."""
    if image.repair_ns == 0:
        return INITIAL_REPAIR_NS
    margin_ns = max(image.repair_ns // MARGIN_SHARE, smoothed_time.DEVIATION_NS_MIN)
    return image.repair_ns + max(4 * image.repair_deviation_ns, margin_ns)


@kernel
def _minimum_ns(image, delay_ns):
    """Return a retry delay that is not shorter than a configured fixed one."""
    return delay_ns if image.nak_is_random else max(delay_ns, image.nak_retry_ns)
