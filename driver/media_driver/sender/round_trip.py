"""Measures the round-trip time of a publication, which determines how long a retransmit lingers.

    sender  --- RTTM, request: timestamp ---->  receiver
            <-- RTTM, reply: timestamp -------

A sender sends a request when its receiver has connected, and again after NAKs. Only the reply to
the last request is used. A retransmit that left a round trip ago has arrived or is lost; NAKs that
arrive earlier were sent before it arrived. A group has many round-trip times, and each of its
receivers would reply, so its sender sends no requests.
"""

from windtunnel.driver.base.system import NS_PER_MS, NS_PER_SECOND
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image import smoothed_time
from windtunnel.driver.media_driver.sender import send_route
from windtunnel.driver.wire import frame_type, rtt_measurement

REQUEST_INTERVAL_NS = 100 * NS_PER_MS
"""Minimum time from a reply to the next request: the interval of heartbeats."""
REPLY_TIMEOUT_NS = 2 * NS_PER_SECOND
"""Time without a reply until another request is sent."""
LINGER_NS_MAX = REPLY_TIMEOUT_NS
"""Maximum linger time that a measurement leads to, because replies may be late, or forged."""
DEVIATION_SHARE_MAX = 32
"""Divisor of the round-trip time that limits the deviation added to it. RFC 6298 assumes half of
the round-trip time at first, and one sample in a round trip changes that slowly. A receiver
measures each repair: its retry is at least a sixteenth later than a round trip, and must be
answered."""

ANY_RECEIVER = 0


@kernel
def request_when_due(state, slot, now_ns):
    """Send an RTTM request if the round-trip time of a publication is unknown, or if NAKs have
    arrived since the previous request.
    """
    pub = state.publications[slot]
    if pub.is_group or pub.receivers_count == 0 or now_ns - pub.rtt_deadline_ns < 0:
        return
    if pub.rtt_ns > 0 and not pub.is_rtt_wanted:
        return
    pub.is_rtt_wanted = 0
    pub.rtt_request_ns = now_ns
    pub.rtt_deadline_ns = now_ns + REPLY_TIMEOUT_NS
    length = rtt_measurement.write(
        state.scratch,
        0,
        frame_type.REPLY,
        pub.session_id,
        pub.stream_id,
        now_ns,
        0,
        ANY_RECEIVER,
    )
    send_route.send_frame(state, slot, length, now_ns)


@kernel
def on_reply(state, slot, echo_timestamp_ns, now_ns):
    """Process an RTTM reply."""
    pub = state.publications[slot]
    if pub.rtt_request_ns == 0 or echo_timestamp_ns != pub.rtt_request_ns:
        return
    pub.rtt_request_ns = 0
    pub.rtt_deadline_ns = now_ns + REQUEST_INTERVAL_NS
    pub.rtt_ns, pub.rtt_deviation_ns = smoothed_time.smooth(
        pub.rtt_ns, pub.rtt_deviation_ns, now_ns - echo_timestamp_ns
    )
    counters.set_release(state.counters, pub.rtt_id, pub.rtt_ns)


@kernel
def linger_ns(pub):
    """Return how long NAKs for a retransmitted range are ignored.

    A receiver with NAKs for all gaps repeats its NAK later than that, see `nak_schedule`, and
    gets a retransmit. The configured linger time is the minimum.
    """
    if pub.rtt_ns == 0:
        return pub.retransmit_linger_ns
    deviation_ns = max(pub.rtt_deviation_ns, smoothed_time.DEVIATION_NS_MIN)
    measured_ns = pub.rtt_ns + min(deviation_ns, pub.rtt_ns // DEVIATION_SHARE_MAX)
    return max(pub.retransmit_linger_ns, min(measured_ns, LINGER_NS_MAX))
