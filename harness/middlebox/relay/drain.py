"""How long the last frames may stay in the relay once the end has been asked for.

    arrival --hold--> --mean + tail of the jitter--> --line at the link's rate--> gone

A relay that is not empty by then is broken, not slow.
"""

from windtunnel.harness.netem.render import TAIL, limit
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import BILLION

DRAIN_NS_MIN = 12 * BILLION
DRAIN_NS_MAX = 50 * BILLION
"""Below the time after which the relay is killed, so that it can still say what went wrong."""
_MARGIN_NS = 2 * BILLION


def drain_ns(case: Case, packet_length_max: int) -> int:
    """Longest time for the last frames to leave: above the longest that a frame may be ordered to
    stay in this case."""
    hold_ns = max((fault.hold_ns for fault in case.faults), default=0)
    under_way_ns = 0
    for weather in case.weather:
        if case.backend_of(weather.link) != "relay":
            continue
        travel_ns = weather.delay_ns + TAIL * weather.jitter_ns
        if weather.rate_bits_per_s:
            bits = limit(weather) * packet_length_max * 8
            travel_ns += bits * BILLION // weather.rate_bits_per_s
        under_way_ns = max(under_way_ns, travel_ns)
    return min(max(hold_ns + under_way_ns + _MARGIN_NS, DRAIN_NS_MIN), DRAIN_NS_MAX)
