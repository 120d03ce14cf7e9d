"""Computes how long the relay may continue to send held frames after a stop request.

    arrival --hold--> --mean + tail of the jitter--> --queue at the link's rate--> sent

A relay that is not empty by then is broken, not slow.
"""

from windtunnel.harness.netem.render import TAIL, limit
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import BILLION

DRAIN_NS_MIN = 12 * BILLION
DRAIN_NS_MAX = 50 * BILLION
"""Maximum drain time, short enough for the relay to report an error before it is killed."""
_MARGIN_NS = 2 * BILLION


def drain_ns(case: Case, packet_length_max: int) -> int:
    """Return the time in nanoseconds for which the relay may continue to send held frames after a
    stop request.

    It exceeds the longest time for which this case can hold or delay a frame.
    """
    hold_ns = max((fault.hold_ns for fault in case.faults), default=0)
    in_flight_ns = 0
    for impairment in case.impairments:
        if case.backend_of(impairment.link) != "relay":
            continue
        travel_ns = impairment.delay_ns + TAIL * impairment.jitter_ns
        if impairment.rate_bits_per_s:
            bits = limit(impairment) * packet_length_max * 8
            travel_ns += bits * BILLION // impairment.rate_bits_per_s
        in_flight_ns = max(in_flight_ns, travel_ns)
    return min(max(hold_ns + in_flight_ns + _MARGIN_NS, DRAIN_NS_MIN), DRAIN_NS_MAX)
