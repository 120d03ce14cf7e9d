"""CUBIC congestion control, which shrinks the window after a loss and grows it along a
cubic curve.

    cwnd = w_max + C (t - K)^3     t seconds since the last loss, K = cbrt(w_max B / C)

The window is in packets of one MTU. The conductor owns the state in the image's record, except for
the round-trip time, which the receiver measures and publishes. Source: spec 3.6, Aeron 1.53.
"""

import math

import numpy as np

from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel

C = 0.4
B = 0.2
INITIAL_PACKETS = 10
RTT_TIMEOUT_MULTIPLE = 4
RTT_MAX_NS = 60 * NS_PER_SECOND
"""Maximum round-trip time. A longer one is ignored, since it would delay the next measurement."""


def initial_window(window_max: int, mtu: int) -> int:
    """Return the initial CUBIC window in bytes."""
    return min(INITIAL_PACKETS * mtu, max(1, window_max // mtu) * mtu, window_max)


def fill(
    record: np.record,
    *,
    initial_rtt_ns: int,
    is_measuring_rtt: bool,
    is_tcp_mode: bool,
    rtt_id: int,
    window_id: int,
    now_ns: int,
) -> None:
    """Initialise the CUBIC fields of an image whose maximum window and MTU are set."""
    packets_max = max(1, int(record["window_max"]) // int(record["mtu"]))
    record["cubic_packets_max"] = packets_max
    record["cubic_packets"] = min(INITIAL_PACKETS, packets_max)
    record["cubic_peak"], record["cubic_k"] = packets_max, math.cbrt(packets_max * B / C)
    record["cubic_is_tcp"] = int(is_tcp_mode)
    record["cubic_update_ns"] = initial_rtt_ns
    record["cubic_last_loss_ns"] = record["cubic_last_update_ns"] = now_ns
    record["rtt_is_measured"], record["rtt_ns"] = int(is_measuring_rtt), initial_rtt_ns
    record["rtt_min_ns"] = initial_rtt_ns
    record["rtt_timeout_ns"] = initial_rtt_ns * RTT_TIMEOUT_MULTIPLE
    record["rtt_id"], record["cubic_window_id"] = rtt_id, window_id


@kernel
def on_track_rebuild(image, values, rtt_ns, now_ns, lowest, is_new_loss):
    """Compute the CUBIC window of an image.

    Returns: (window in bytes, whether a status message must be sent immediately)"""
    is_forced = False
    if is_new_loss:
        is_forced = True
        image.cubic_peak = image.cubic_packets
        image.cubic_k = np.cbrt(image.cubic_peak * B / C)
        image.cubic_packets = max(1, int(image.cubic_packets * (1.0 - B)))
        image.cubic_last_loss_ns = now_ns
    elif (
        image.cubic_packets < image.cubic_packets_max
        and now_ns - image.cubic_last_update_ns > image.cubic_update_ns
    ):
        image.cubic_packets = _window_packets(image, rtt_ns, now_ns)
        image.cubic_last_update_ns = now_ns
    elif image.cubic_packets == 1 and lowest > image.next_status_position:
        is_forced = True
    window = min(image.cubic_packets * image.mtu, image.window_max)
    counters.set_release(values, image.cubic_window_id, window)
    return window, is_forced


@kernel
def _window_packets(image, rtt_ns, now_ns):
    """Return the window in packets at the time `now_ns`, according to the cubic curve."""
    passed = (now_ns - image.cubic_last_loss_ns) / NS_PER_SECOND
    from_k = passed - image.cubic_k
    # After a long idle time, the curve exceeds the integer range.
    gain = min(C * from_k * from_k * from_k, float(image.cubic_packets_max))
    packets = min(image.cubic_peak + int(gain), image.cubic_packets_max)
    if image.cubic_is_tcp and packets < image.cubic_peak:
        round_trips = passed * NS_PER_SECOND / max(rtt_ns, 1)
        slope = 3.0 * B / (2.0 - B)
        as_tcp = image.cubic_peak * (1.0 - B) + slope * round_trips
        packets = max(packets, int(min(as_tcp, float(image.cubic_packets_max))))
    return max(1, packets)
