"""Smooths measured times and their deviation, as RFC 6298 does with round-trip times.

    first sample R   smoothed = R                            deviation = R / 2
    next sample R    smoothed = 7/8 smoothed + 1/8 R         deviation = 3/4 deviation + 1/4 |error|

The receiver smooths the time from a NAK to its repair, the sender its round-trip time.
"""

from windtunnel.driver.base.system import NS_PER_MS, NS_PER_SECOND
from windtunnel.driver.kernels.jit import kernel

DEVIATION_NS_MIN = NS_PER_MS
"""Minimum of the deviation that is added to a smoothed time: the granularity of RFC 6298."""
SAMPLE_NS_MAX = 2 * NS_PER_SECOND
"""Longer samples count as this long. A paused peer, or a repair that answers the last of many NAKs,
would otherwise delay the next repairs by minutes. No path has a longer round trip."""


@kernel
def smooth(smoothed_ns, deviation_ns, sample_ns):
    """Add a sample to a smoothed time, which is 0 before the first sample.

    Returns: (smoothed time, at least 1; deviation)
    """
    sample_ns = max(1, min(sample_ns, SAMPLE_NS_MAX))
    if smoothed_ns == 0:
        return sample_ns, sample_ns // 2
    error_ns = sample_ns - smoothed_ns
    deviation_ns += (abs(error_ns) - deviation_ns) // 4
    return max(1, smoothed_ns + error_ns // 8), deviation_ns
