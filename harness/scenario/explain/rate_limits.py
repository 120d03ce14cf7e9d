"""Upper limits of a stream's rate, and the earliest time at which the stream can be delivered.

    window   sent |=== window ===|      |=== window ===|      at most one window per round trip
                  |<--- round trip ---->|
    link     headers included, one packet after another
    pace     of the publisher;  reader: pace of the subscriber

The limits hold for every run: they assume the shortest delays, no losses and no time between
arrival, consumption and status message. Only a stream whose messages have several lengths has
estimated limits, because its overhead depends on the lengths.

A receiver sends a status message when it has consumed a quarter of its window since the last one,
so a sender can rely on three quarters of the window only:

    consumed  |-- quarter --|  not acknowledged yet
              |<---- usable for what is in flight ---->|  limit of the sender
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.scenario.explain.stream_length import (
    expected_framed_bytes,
    has_one_length,
)
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_event import possible_impairments
from windtunnel.harness.scenario.resolved.unawaited import waits_for
from windtunnel.harness.scenario.schema.channel import WINDOW_BYTES, parse_channel
from windtunnel.harness.scenario.schema.jitter import deviations
from windtunnel.harness.scenario.schema.pace import PaceCase
from windtunnel.harness.scenario.schema.units import (
    BILLION,
    format_byte_rate,
    format_bytes,
    format_duration,
    format_rate,
)

DATAGRAM_HEADERS = 28
"""Bytes of IPv4 and UDP headers, which count against the rate of a link."""
PACER_SLACK_NS = 2_000_000
"""Lost time for which a pacer makes up, so that a stream ends this much earlier than its rate."""
USABLE_SHARE = 0.75
"""Share of a window that a sender can always use. Source: Aeron 1.53, status messages."""
STATIC = "static"
WINDOW, LINK, PACE, READER = "window", "link", "pace", "reader"


@dataclass(frozen=True)
class RateLimit:
    """An upper limit of a stream's rate, with its cause and the resulting minimum delivery time."""

    cause: str
    bytes_per_s: float
    "Message bytes per second."
    least_ns: int
    "Least time from the first offer to the last delivery."


def receiver_window(flow: TrafficCase) -> int | None:
    """Return the receiver's window in bytes, or None if congestion control can change the
    window.
    """
    receive = parse_channel(flow.receive)
    if receive.parameters.get("cc", STATIC) != STATIC:
        return None
    # A driver limits the window to half of the term.
    return min(receive.receiver_window_bytes or WINDOW_BYTES, flow.term_length // 2)


def shortest_delay_ns(case: Case, sender: str, receiver: str) -> int:
    """Return the shortest delay of a packet from one host to another, also during events."""
    found = _possible(case, sender, receiver)
    return min((_shortest_delay_ns(each) for each in found), default=0)


def _possible(case: Case, sender: str, receiver: str) -> list[ImpairmentCase]:
    link = case.link_between(sender, receiver)
    return [] if link < 0 else [*possible_impairments(case, case.link_names[link])]


def _shortest_delay_ns(impairment: ImpairmentCase) -> int:
    if impairment.reorder_ppb:
        return 0  # A packet that is reordered skips the delay.
    jitter_ns = round(impairment.jitter_ns * float(deviations(impairment.distribution).min()))
    return max(0, impairment.delay_ns + (jitter_ns if impairment.jitter_ns else 0))


def round_trip_ns(case: Case, flow: TrafficCase) -> int:
    """Return the shortest round trip between a flow's two hosts."""
    there = shortest_delay_ns(case, flow.from_host, flow.to_host)
    return there + shortest_delay_ns(case, flow.to_host, flow.from_host)


def window_limit(case: Case, flow: TrafficCase) -> RateLimit | None:
    """Return the rate limit that a receiver's window sets, or None if the window sets none.

    A sender may send what a status message permits: one window from the position consumed. The
    bytes of padding frames do not count, because they may exceed the window.
    """
    window, round_ns = receiver_window(flow), round_trip_ns(case, flow)
    forged = {each.type for fault in case.faults for each in fault.forged}
    if window is None or round_ns == 0 or "SM" in forged:
        return None
    framed = expected_framed_bytes(flow)
    rounds = max(0, -int(-framed // window) - 1)
    one_way_ns = shortest_delay_ns(case, flow.from_host, flow.to_host)
    share = flow.total_bytes / framed
    return RateLimit(WINDOW, window * share * BILLION / round_ns, rounds * round_ns + one_way_ns)


def link_limit(case: Case, flow: TrafficCase) -> RateLimit | None:
    """Return the rate limit that a link's configured rate sets, or None if the link has no
    configured rate.
    """
    rate = _link_rate(case, flow)
    if not rate:
        return None
    framed = expected_framed_bytes(flow)
    # The fewest datagrams are as long as the MTU.
    bits = 8 * (framed + framed / flow.mtu * DATAGRAM_HEADERS)
    seconds = bits / rate
    return RateLimit(LINK, flow.total_bytes / seconds, int(seconds * BILLION))


def stream_limits(case: Case, traffic: TrafficCase) -> list[RateLimit]:
    """Return the known limits of a stream's rate, the strictest first.

    Windows limit a sender to several receivers as far as its flow control waits for them: for the
    slowest of those that it waits for or, if there are none, for the fastest of all.
    """
    if traffic.merges is not None or len(traffic.publishers) > 1:
        return []  # Part of the data comes from elsewhere.
    found = [
        limit
        for cause, pace in ((PACE, traffic.pace), (READER, traffic.consume))
        if (limit := _pace_limit(cause, pace, traffic)) is not None
    ]
    awaited = [flow for flow in traffic.flows if waits_for(flow)]
    windows = [window_limit(case, flow) for flow in awaited or traffic.flows]
    choose = max if awaited else min
    known = [each for each in windows if each is not None]
    if known and (awaited or len(known) == len(windows)):
        found.append(choose(known, key=lambda each: each.least_ns))
    links = [limit for flow in traffic.flows if (limit := link_limit(case, flow)) is not None]
    found += sorted(links, key=lambda each: -each.least_ns)[:1]
    return sorted(found, key=lambda each: -each.least_ns)


def _pace_limit(cause: str, pace: PaceCase, traffic: TrafficCase) -> RateLimit | None:
    # The last message is not followed by a wait.
    least_ns = pace.least_ns(max(1, traffic.total_bytes - traffic.longest_bytes))
    whole_ns = pace.least_ns(traffic.total_bytes)
    if whole_ns == 0:
        return None
    rate = traffic.total_bytes * BILLION / whole_ns
    return RateLimit(cause, rate, max(0, least_ns - PACER_SLACK_NS))


def limit_lines(case: Case, traffic: TrafficCase) -> Iterator[str]:
    """Yield lines about a stream's round trip, its window, and the earliest time at which it can be
    delivered.
    """
    limits = stream_limits(case, traffic)
    if any(each.cause == WINDOW for each in limits):
        yield from _window_lines(case, traffic)
    if not limits or limits[0].least_ns < 1:
        return
    first = limits[0]
    about = "" if has_one_length(traffic) or first.cause in (PACE, READER) else "about "
    text = f"  delivered after {about}{first.least_ns / BILLION:.2f} s at the earliest"
    text += f" ({first.cause}: at most {rate_text(first.bytes_per_s)})"
    if first.least_ns >= case.wall_ns:
        text += f", over the budget of {format_duration(case.wall_ns)}"
    yield text


def _window_lines(case: Case, traffic: TrafficCase) -> Iterator[str]:
    """Yield one line with the window and round trip for each group of receivers that have equal
    values, and one with the window that suffices if theirs does not.
    """
    for text_of in (_window_text, _sufficient_text):
        texts = {flow.to_host: text_of(case, flow) for flow in traffic.flows}
        for text in dict.fromkeys(texts.values()):
            hosts = ", ".join(host for host, other in texts.items() if other == text)
            if text:
                yield f"  {hosts}: {text}" if len(set(texts.values())) > 1 else f"  {text}"


def _window_text(case: Case, flow: TrafficCase) -> str:
    window, limit = receiver_window(flow), window_limit(case, flow)
    if window is None or limit is None:
        return ""
    trip = f"round trip {format_duration(round_trip_ns(case, flow))}"
    allowed = f"the window of {window:,} bytes allows {rate_text(limit.bytes_per_s)}"
    asked = _asked(case, flow)
    if asked is None:
        return f"{trip}: {allowed}"
    rate, name = asked
    return f"{trip}: {name} needs {_in_flight(case, flow, rate):,.0f} bytes in flight, {allowed}"


def _sufficient_text(case: Case, flow: TrafficCase) -> str:
    """Return the window with which a stream at its rate never waits for a status message, or an
    empty string if its window is as large, or its rate is unknown.
    """
    window, asked = receiver_window(flow), _asked(case, flow)
    if window is None or asked is None or window_limit(case, flow) is None:
        return ""
    sufficient = math.ceil(_in_flight(case, flow, asked[0]) / USABLE_SHARE)
    if window >= sufficient:
        return ""
    text = f"without losses, a window of {sufficient:,} bytes (rcv-wnd={-(-sufficient // 1024)}k"
    if sufficient > flow.term_length // 2:
        term = format_bytes(1 << (2 * sufficient - 1).bit_length())
        text += f", term-length={term.removesuffix('iB').lower()}"
    return f"{text}) prevents stalls: a status message acknowledges a quarter of a window at a time"


def _in_flight(case: Case, flow: TrafficCase, bytes_per_s: float) -> float:
    """Return the bytes of a stream's frames that are sent in a round trip at a rate."""
    frames_per_byte = expected_framed_bytes(flow) / flow.total_bytes
    return bytes_per_s * frames_per_byte * round_trip_ns(case, flow) / BILLION


def _asked(case: Case, flow: TrafficCase) -> tuple[float, str] | None:
    """Return the rate of a stream's publisher as a number and as text. If it has no fixed rate, the
    rate of its link is returned, or None if the link has none.
    """
    if flow.pace.bytes_per_s:
        return flow.pace.bytes_per_s, format_byte_rate(flow.pace.bytes_per_s)
    link = link_limit(case, flow)
    if link is None:
        return None
    return link.bytes_per_s, format_rate(_link_rate(case, flow))


def _link_rate(case: Case, flow: TrafficCase) -> int:
    """Return the highest rate of a flow's link in bits per second, or 0 if there is no limit."""
    rates = [each.rate_bits_per_s for each in _possible(case, flow.from_host, flow.to_host)]
    return 0 if 0 in rates else max(rates, default=0)
