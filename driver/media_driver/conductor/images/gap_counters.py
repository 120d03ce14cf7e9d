"""The counters of an image that has a row for each gap.

    rcv-gaps-open            gaps at this time
    rcv-oldest-gap           age of the oldest gap, in nanoseconds; 0 without a gap
    rcv-nak-retries          NAKs sent again for the same gap                    reliable stream
    rcv-repair-time          smoothed time from NAK to repair, in nanoseconds    reliable stream
    rcv-gaps-filled-early    gaps of which a datagram arrived after the fill     unreliable stream

The conductor sets the first two and the repair time, the receiver counts the others.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel


@kernel
def publish(values, image, gaps, now_ns):
    """Set the counters of an image's gaps."""
    counters.set_release(values, image.gaps_open_id, image.gap_count)
    age_ns = now_ns - gaps[0].found_ns if image.gap_count > 0 else 0
    counters.set_release(values, image.oldest_gap_id, age_ns)
    if image.is_nak_all_gaps:
        counters.set_release(values, image.repair_time_id, image.repair_ns)
