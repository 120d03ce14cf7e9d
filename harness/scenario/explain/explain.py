"""A case in words: what will be sent, what will be done to it, and how often to expect it.

The counts are estimates from the distribution of message lengths; the plan of a run, which
depends on its seed, gives the exact ones.
"""

import math
from collections.abc import Iterator

from windtunnel.harness.scenario.explain.explain_fault import choice_lines, fault_line
from windtunnel.harness.scenario.explain.explain_impairment import weather_lines
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.schema.archive import archive_line
from windtunnel.harness.scenario.schema.channel import ALIGNMENT, HEADER_LENGTH
from windtunnel.harness.scenario.schema.host_event import event_line
from windtunnel.harness.scenario.schema.merge import merge_line
from windtunnel.harness.scenario.schema.pace import pace_line
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

_SAMPLES = 4096
WINDOW_DEFAULT = 128 * 1024
"""A receiver's, unless it is asked for another. Source: Aeron 1.53, the same in both drivers."""


def expected_data_frames(traffic: TrafficCase) -> float:
    """About how many DATA frames a stream has, before any is sent again."""
    low, high = math.log(traffic.shortest_bytes), math.log(traffic.longest_bytes + 1)
    most = traffic.mtu - HEADER_LENGTH
    lengths = [
        int(math.exp(low + (index + 0.5) / _SAMPLES * (high - low))) for index in range(_SAMPLES)
    ]
    frames = sum(-(-length // most) for length in lengths)
    return max(1.0, traffic.total_bytes / sum(lengths) * frames)


def expected_faults(case: Case, fault: FaultCase) -> float:
    """About how many DATA frames a rule will act on, with those sent again after a loss."""
    total = 0.0
    for traffic in case.traffic:
        for flow in traffic.flows:
            forward = case.link_names[case.link_between(flow.from_host, flow.to_host)]
            if "DATA" not in fault.frame_types or forward not in fault.links:
                continue
            frames = expected_data_frames(traffic)
            if traffic.reliable:
                frames /= 1 - min(_loss(case, forward), 0.99)
            total += frames * fault.share
    return total


def runs_out_of_reach(traffic: TrafficCase) -> bool:
    """Whether padding can carry the sender so far that it refuses a held-back reader's answers.

        reader's position |----- window -----|-- padding -->|  sender's position
                          |<---- half a term ---->|  a status message from further behind is refused

    Padding is as long as a message that found no room in its term, and may pass the window's end.
    """
    half = traffic.term_length // 2
    window = min(traffic.receiver_window_bytes or WINDOW_DEFAULT, half)
    whole, rest = divmod(traffic.longest_bytes, traffic.mtu - HEADER_LENGTH)
    last = -(-(rest + HEADER_LENGTH) // ALIGNMENT) * ALIGNMENT if rest else 0
    return window + whole * traffic.mtu + last > half


def explain(case: Case) -> str:
    """The case as text for people."""
    return "\n".join(_lines(case))


def _loss(case: Case, link: str) -> float:
    """The share of DATA frames that some rule drops on a link."""
    passing = 1.0
    for fault in case.faults:
        if fault.action == "drop" and "DATA" in fault.frame_types and link in fault.links:
            passing *= 1 - fault.share
    return 1 - passing


def _lines(case: Case) -> Iterator[str]:
    yield f"{case.name}  (seed {case.seed}, {case.fidelity})"
    yield ""
    for line in case.about.strip().splitlines():
        yield f"  {line}"
    yield ""
    yield "hosts     " + ", ".join(f"{each.name} at {each.address}" for each in case.hosts)
    if case.links:
        yield "links     " + ", ".join(" and ".join(each.between) for each in case.links)
    yield f"payload   {case.payload.path}, {case.payload.length_bytes} bytes"
    yield f"budget    {format_duration(case.wall_ns)} of real time"
    for archive in case.archives:
        yield f"archive   {archive_line(archive)}"
    for traffic in case.traffic:
        yield ""
        yield from _traffic_lines(traffic)
        if case.events and runs_out_of_reach(traffic):
            yield "  window and padding exceed half a term: a reader that an event holds back"
            yield "  for 5 s may count as gone; a narrower rcv-wnd prevents that"
    yield ""
    yield "faults, first match decides"
    if not case.faults:
        yield "  none: everything passes"
    for index, fault in enumerate(case.faults):
        yield from _fault_lines(case, index, fault)
    if case.events:
        yield ""
        yield "events"
        yield from (f"  {event_line(each)}" for each in case.events)
    for name, value in case.timeouts.variables.items():
        yield f"  {name}={value}"
    yield from weather_lines(case.backend, case.weather)
    yield ""
    yield "expect    " + ", ".join(check.name for check in case.expect)


def _traffic_lines(traffic: TrafficCase) -> Iterator[str]:
    kind = "reliable" if traffic.reliable else "unreliable"
    initial = "chosen by the driver" if traffic.initial_term_id is None else traffic.initial_term_id
    window = traffic.receiver_window_bytes
    ways = f"{', '.join(traffic.publishers)} to {', '.join(traffic.subscribers)}"
    yield f"traffic   {traffic.id}: {ways}, {kind}"
    yield f"  stream {traffic.stream_id}, {traffic.publication} publication, port {traffic.port}"
    yield from _channels("send", traffic.channel, traffic.channels, traffic.destinations)
    sources = tuple(f"{host}: {source}" for host, source in traffic.sources)
    yield from _channels("receive", traffic.receive, traffic.receives, sources)
    if traffic.partial:
        yield f"  {', '.join(traffic.partial)} may be cut off before the end"
    yield (
        f"  term {format_bytes(traffic.term_length)}, mtu {traffic.mtu}, "
        f"initial term id {initial}, window {'default' if window is None else format_bytes(window)}"
    )
    yield (
        f"  content {format_bytes(traffic.total_bytes)} in messages of {traffic.shortest_bytes} to "
        f"{traffic.longest_bytes} bytes, about {expected_data_frames(traffic):.0f} DATA frames, "
        f"{_terms(traffic)} terms"
    )
    if not traffic.pace.is_free:
        yield f"  publishes {pace_line(traffic.pace)}"
    if traffic.close_after_ns:
        yield f"  closes {format_duration(traffic.close_after_ns)} after its last message"
    if not traffic.consume.is_free:
        yield f"  consumes {pace_line(traffic.consume)}"
    if traffic.replays:
        yield f"  the archive on {traffic.from_host} replays its recording of {traffic.replays}"
    if traffic.merges is not None:
        yield f"  the subscriber merges: {merge_line(traffic.merges)}"
    if traffic.recorded:
        where = "what it sends" if traffic.recorded in traffic.publishers else "what it receives"
        yield f"  recorded by the archive on {traffic.recorded}: {where}"
    if traffic.replicated:
        yield f"  copied from there by the archive on {traffic.replicated}"


def _channels(
    verb: str, only: str, by_host: tuple[tuple[str, str], ...], added: tuple[str, ...]
) -> Iterator[str]:
    """The channel of the one end, or each host's, and what is added to it."""
    if not by_host:
        yield f"  {verb:<9} {only}"
    for host, channel in by_host:
        yield f"  {verb:<9} {host}: {channel}"
    for channel in added:
        yield f"  {'and adds':<9} {channel}"


def _terms(traffic: TrafficCase) -> int:
    frames = expected_data_frames(traffic)
    framed = traffic.total_bytes + frames * (HEADER_LENGTH + ALIGNMENT / 2)
    return math.ceil(framed / traffic.term_length)


def _fault_lines(case: Case, index: int, fault: FaultCase) -> Iterator[str]:
    yield f"  {index} {fault.id}: {fault_line(fault)}"
    for line in choice_lines(fault, sorted(each.stream_id for each in case.traffic)):
        yield f"      {line}"
    expected = expected_faults(case, fault) if fault.is_plain else 0
    if expected:
        yield f"      about {expected:.0f} DATA frames"
    if set(fault.frame_types) - {"DATA", "PAD"}:
        yield "      frames without a position: chosen by order of appearance, so timing-sensitive"
