"""Describes a resolved scenario: hosts, streams, fault rules, and how many frames each rule
affects.

The counts are estimates based on the distribution of message lengths. The exact counts follow from
a run's plan, which depends on its seed.
"""

import math
from collections.abc import Iterator

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.scenario.applications.observed_case import observed_lines
from windtunnel.harness.scenario.exercises import ABOUT
from windtunnel.harness.scenario.explain.affected_frames import affected_frames
from windtunnel.harness.scenario.explain.application_lines import application_lines
from windtunnel.harness.scenario.explain.crossed_timeouts import (
    cut_timeouts,
    event_timeouts,
    kill_lines,
    timeout_lines,
)
from windtunnel.harness.scenario.explain.expectations import expectation_lines
from windtunnel.harness.scenario.explain.explain_fault import choice_lines, fault_line
from windtunnel.harness.scenario.explain.explain_impairment import impaired_lines, impairment_lines
from windtunnel.harness.scenario.explain.flow_control_line import flow_control_line
from windtunnel.harness.scenario.explain.rate_limits import limit_lines
from windtunnel.harness.scenario.explain.retransmit_linger import linger_lines
from windtunnel.harness.scenario.explain.stream_length import (
    expected_data_frames,
    expected_framed_bytes,
    expected_padding,
    fragment_count,
    framed_length,
    has_one_length,
)
from windtunnel.harness.scenario.frame_expectation import NAME as EXPECT_FRAMES
from windtunnel.harness.scenario.frame_expectation import parse_expectation
from windtunnel.harness.scenario.resolved.case import Case, CheckCase, TrafficCase
from windtunnel.harness.scenario.resolved.cut import (
    CONNECTION_NS,
    may_disconnect,
    may_lack_receivers,
    silence_ns,
)
from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.unawaited import (
    required_receivers,
    starts_with_all,
    waits_for,
    without_waiting,
)
from windtunnel.harness.scenario.schema.archive import archive_line
from windtunnel.harness.scenario.schema.channel import HEADER_LENGTH, WINDOW_BYTES, parse_channel
from windtunnel.harness.scenario.schema.host_event import event_line
from windtunnel.harness.scenario.schema.merge import merge_line
from windtunnel.harness.scenario.schema.pace import PaceCase, pace_line
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration


def padding_exceeds_half_term(traffic: TrafficCase) -> bool:
    """Return whether padding can advance the sender so far ahead that the sender rejects status
    messages.

        receiver position |----- window -----|-- padding -->|  sender position
                          |<---- half a term ---->|  earlier status messages are rejected

    Padding is as long as a message that did not fit in its term, and can exceed the window.
    """
    framed_bytes = framed_length(traffic.longest_bytes, traffic.mtu)
    return traffic.window_bytes + framed_bytes > traffic.term_length // 2


def explain(case: Case) -> str:
    """Return the complete description of a case (a resolved scenario)."""
    return "\n".join(_lines(case))


def _lines(case: Case) -> Iterator[str]:
    yield f"{case.name}  (seed {case.seed}, {case.fidelity})"
    yield ""
    for line in case.about.strip().splitlines():
        yield f"  {line}"
    yield ""
    yield "hosts     " + ", ".join(f"{each.name} at {each.address}" for each in case.hosts)
    if case.links:
        yield "links     " + ", ".join(" and ".join(each.between) for each in case.links)
    size = f", {case.payload.length_bytes} bytes" if case.payload.length_bytes else ""
    if case.traffic:
        yield f"payload   {case.payload.path}{size}"
    yield f"budget    {format_duration(case.wall_ns)} of real time"
    for archive in case.archives:
        yield f"archive   {archive_line(archive)}"
    for traffic in case.traffic:
        yield ""
        yield from _traffic_lines(traffic)
        yield from limit_lines(case, traffic)
        yield from linger_lines(case, traffic)
        yield from _expectation_lines(case, traffic)
        yield from (f"  {line}" for line in expectation_lines(case, traffic))
        stops = any(event.stops_processes for event in case.events)
        if stops and padding_exceeds_half_term(traffic):
            yield "  window and padding exceed half a term: a subscriber that an event stops for"
            yield "  5 s may be considered dead (a smaller rcv-wnd prevents this)"
    yield from application_lines(case)
    if case.exercises:
        yield ""
        yield f"exercises between {' and '.join(each.name for each in case.hosts[:2])}"
        yield from (f"  {each}: {ABOUT[each]}" for each in case.exercises)
    if case.observed:
        yield ""
        yield "observed streams of applications (their content is unknown)"
        yield from (f"  {line}" for each in case.observed for line in observed_lines(each))
    if case.observes_all:
        yield ""
        yield "all streams that the captures show are observed (their content is unknown)"
    yield ""
    yield "faults (for each frame, only the first rule that applies is executed)"
    if not case.faults:
        yield "  none"
    for index, fault in enumerate(case.faults):
        yield from _fault_lines(case, index, fault)
    if case.events:
        yield ""
        yield "events"
        for event in case.events:
            links = ", ".join(case.hosts_of_links(each.link for each in event.impairments))
            yield f"  {event_line(event, has_traffic=bool(case.traffic), links=links)}"
            lines = [*timeout_lines(silence_ns(case, event), event_timeouts(case, event))]
            lines += [*kill_lines(case, event), *impaired_lines(event)]
            yield from (f"      {line}" for line in lines)
    for name, value in case.timeouts.variables.items():
        yield f"  {name}={value}"
    for host, settings in case.drivers.items():
        yield from (f"  driver of host {host}: {name}={settings[name]}" for name in settings)
    yield from impairment_lines(case)
    yield ""
    checks = [_check_text(check) for check in case.expect]
    checks += ["applications_ran"] if case.applications else []
    checks += ["those of observed streams"] if case.observed or case.observes_all else []
    checks += [f"those in {each} (only with `run --allow-commands`)" for each in case.checks]
    yield "checks    " + (", ".join(checks) or "none")


def _check_text(check: CheckCase) -> str:
    if check.name != EXPECT_FRAMES:
        return check.name
    return f"{check.name} ({parse_expectation(check.arguments).about})"


def _expectation_lines(case: Case, traffic: TrafficCase) -> Iterator[str]:
    """Yield lines about what Aeron does not guarantee for a stream because of its timeouts or flow
    control.
    """
    if may_lack_receivers(case, traffic):
        least = required_receivers(traffic)
        yield f"  fewer than the required {least} receivers may be left: the publication is then"
        yield "  disconnected, and the publisher waits until enough receivers are connected again"
    elif may_disconnect(case, traffic):
        yield (
            f"  no status message may arrive for {format_duration(CONNECTION_NS)}: the publication "
            "is then"
        )
        yield "  disconnected, and the publisher waits until a receiver is connected again"
    late = [flow for flow in traffic.flows if not waits_for(flow)]
    effect = "fall behind" if starts_with_all(traffic) else "miss the start"
    for flow in {each.to_host: each for each in late}.values():
        yield f"  {flow.to_host} may {effect}: {without_waiting(flow)}"


def _traffic_lines(traffic: TrafficCase) -> Iterator[str]:
    kind = "reliable" if traffic.reliable else "unreliable"
    initial = "chosen by the driver" if traffic.initial_term_id is None else traffic.initial_term_id
    hosts = f"{', '.join(traffic.publishers)} to {', '.join(traffic.subscribers)}"
    yield f"traffic   {traffic.id}: {hosts}, {kind}"
    yield f"  stream {traffic.stream_id}, {traffic.publication} publication, port {traffic.port}"
    yield from _channels("send", traffic.channel, traffic.channels, traffic.destinations)
    sources = tuple(f"{host}: {source}" for host, source in traffic.sources)
    yield from _channels("receive", traffic.receive, traffic.receives, sources)
    if traffic.partial:
        yield f"  {', '.join(traffic.partial)} need not receive the whole stream"
    if not parse_channel(traffic.channel).signals_end:
        yield "  eos=false: a subscriber ends when its image does, after the image liveness timeout"
    yield (
        f"  term {format_bytes(traffic.term_length)}, mtu {traffic.mtu}, "
        f"initial term id {initial}, window {_window_text(traffic)}"
    )
    about = "" if has_one_length(traffic) else "about "
    yield (
        f"  content {format_bytes(traffic.total_bytes)} in {_messages_text(traffic)}, {about}"
        f"{expected_data_frames(traffic):,.0f} DATA frames, about {_terms(traffic)} terms"
    )
    yield f"  {_fragments_text(traffic)}"
    yield f"  {flow_control_line(traffic)}"
    if traffic.starts_with:
        count = len(traffic.subscribers)
        who = f"all {count}" if starts_with_all(traffic) else f"{traffic.starts_with} of {count}"
        yield f"  starts when {who} subscribers have joined"
    if not traffic.pace.is_unlimited:
        yield f"  publishes {_pace_text(traffic, traffic.pace)}"
    if traffic.close_after_ns:
        yield f"  closes {format_duration(traffic.close_after_ns)} after its last message"
    if not traffic.consume.is_unlimited:
        yield f"  consumes {_pace_text(traffic, traffic.consume)}"
    if traffic.replays:
        yield f"  the archive on {traffic.from_host} replays its recording of {traffic.replays}"
    if traffic.merges is not None:
        yield f"  the subscriber starts {merge_line(traffic.merges)}"
    if traffic.recorded:
        end = "publisher" if traffic.recorded in traffic.publishers else "subscriber"
        yield f"  recorded by the archive on {traffic.recorded}, a {end}'s host"
    if traffic.replicated:
        yield f"  replicated from there by the archive on {traffic.replicated}"


def _window_text(traffic: TrafficCase) -> str:
    """Describe the receiver's window, which a driver limits to half of the term."""
    asked, window = traffic.receiver_window_bytes, traffic.window_bytes
    if window < (asked or WINDOW_BYTES):
        text = format_bytes(asked or WINDOW_BYTES)
        return f"{format_bytes(window)} (half of the term, instead of {text})"
    return "default" if asked is None else format_bytes(window)


def _messages_text(traffic: TrafficCase) -> str:
    """Describe a stream's messages. Only messages of one length have a number that no seed
    changes.
    """
    if not has_one_length(traffic):
        return f"messages of {traffic.shortest_bytes} to {traffic.longest_bytes} bytes"
    count = -(-traffic.total_bytes // traffic.longest_bytes)
    return f"{count:,} {noun_for(count, 'message')} of {traffic.longest_bytes} bytes"


def _pace_text(traffic: TrafficCase, pace: PaceCase) -> str:
    """Describe an application's pace, also in messages if all have the same length."""
    text = pace_line(pace)
    if not pace.bytes_per_s or not has_one_length(traffic):
        return text
    return f"{text} ({pace.bytes_per_s / traffic.longest_bytes:,.10g} messages/s)"


def _channels(
    verb: str, only: str, by_host: tuple[tuple[str, str], ...], added: tuple[str, ...]
) -> Iterator[str]:
    """Yield a line for each channel of a stream's publishers or subscribers, and for each added
    destination.
    """
    if not by_host:
        yield f"  {verb:<9} {only}"
    for host, channel in by_host:
        yield f"  {verb:<9} {host}: {channel}"
    for channel in added:
        yield f"  {'adds':<9} {channel}"


def _fragments_text(traffic: TrafficCase) -> str:
    """Describe how many frames a message is split into, and how much headers, alignment and padding
    add.
    """
    lengths = dict.fromkeys((traffic.shortest_bytes, traffic.longest_bytes))
    counts = dict.fromkeys(fragment_count(each, traffic.mtu) for each in lengths)
    text = " to ".join(f"{each:,}" for each in counts)
    frames = "1 frame" if text == "1" else f"{text} frames"
    added = expected_framed_bytes(traffic) / traffic.total_bytes - 1
    most = traffic.mtu - HEADER_LENGTH
    text = f"a message is {frames} of at most {most} payload bytes"
    text += f"; headers and alignment add {added:.1%}"
    padding_bytes, is_exact = expected_padding(traffic)
    if not padding_bytes:
        return text
    about = "" if is_exact else "about "
    share = padding_bytes / traffic.total_bytes
    return f"{text}, padding at the ends of terms {about}{share:.1%}"


def _terms(traffic: TrafficCase) -> int:
    padding_bytes, _ = expected_padding(traffic)
    return math.ceil((expected_framed_bytes(traffic) + padding_bytes) / traffic.term_length)


def _fault_lines(case: Case, index: int, fault: FaultCase) -> Iterator[str]:
    yield f"  {index} {fault.id}: {fault_line(fault, case.hosts_of_links(fault.links))}"
    for line in choice_lines(fault, sorted(each.stream_id for each in case.traffic)):
        yield f"      {line}"
    affected = affected_frames(case, fault)
    if affected:
        yield f"      about {affected:.0f} DATA frames"
    for lasts_ns, timeouts in cut_timeouts(case, fault).items():
        yield from (f"      {line}" for line in timeout_lines(lasts_ns, timeouts))
    if set(fault.frame_types) - {"DATA", "PAD"}:
        yield "      frames without a position are selected by order of arrival, which varies"
