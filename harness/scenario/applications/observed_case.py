"""Observed streams in a resolved case, in the form in which the judge's checks know streams."""

from collections.abc import Iterator, Mapping, Sequence

from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.scenario.applications.observe import Observed, StreamLimits
from windtunnel.harness.scenario.resolved.traffic_case import StreamLimitsCase, TrafficCase
from windtunnel.harness.scenario.schema.channel import SELF, fill_in, parse_channel
from windtunnel.harness.scenario.schema.units import format_byte_rate, format_duration


def observed_case(observed: Observed, addresses: Mapping[str, str]) -> TrafficCase:
    """Convert an observed stream to the form in which the judge's checks know streams. Its content
    is unknown: the lengths and the kind of publication are placeholders.
    """
    channel = parse_channel(observed.channel)
    text = fill_in(observed.channel, {**addresses, SELF: addresses[observed.from_host]})
    ports = sorted(channel.ports)
    return TrafficCase(
        id=observed.id,
        ordinal=0,
        stream_id=observed.stream_id,
        from_host=observed.from_host,
        to_host=observed.to_host,
        publication="concurrent",
        channel=text,
        receive=text,
        port=ports[0],
        ports=tuple(ports) if len(ports) > 1 else (),
        reliable=channel.reliable,
        term_length=channel.term_length,
        mtu=channel.mtu,
        initial_term_id=None,
        initial_position=0,
        receiver_window_bytes=channel.receiver_window_bytes,
        total_bytes=1,
        shortest_bytes=1,
        longest_bytes=1,
        rejoins=True,
        observed=True,
        limits=_limits(observed.expect),
    )


def _limits(expected: StreamLimits) -> StreamLimitsCase | None:
    given = {name: value for name, value in expected.model_dump().items() if value is not None}
    return StreamLimitsCase(**given) if given else None


def found_case(
    stream_id: int, from_host: str, to_host: str, address: str, ports: Sequence[int], name: str
) -> TrafficCase:
    """Return a stream that was found in the captures, in the same form. `address` and `ports` are
    those to which its data went.
    """
    channel = f"aeron:udp?endpoint={address}:{ports[0]}"
    written = {"id": "found", "stream": stream_id, "channel": channel}
    observed = Observed.model_validate({**written, "from": from_host, "to": to_host})
    made = observed_case(observed, {from_host: ""})
    several = tuple(ports) if len(ports) > 1 else ()
    return made.model_copy(update={"id": name, "found": True, "ports": several})


def observed_lines(observed: TrafficCase) -> Iterator[str]:
    """Yield a description of an observed stream, and a line for each of its limits."""
    yield (
        f"{observed.id}: stream {observed.stream_id} from {observed.from_host} to "
        f"{observed.to_host}, {observed.channel}"
    )
    limits = observed.limits or StreamLimitsCase()
    if limits.least_bytes_per_s:
        yield f"    goodput is at least {format_byte_rate(limits.least_bytes_per_s)}"
    if limits.silence_most_ns:
        yield f"    new data is usable every {format_duration(limits.silence_most_ns)}"
    if limits.recovery_most_ns:
        within = format_duration(limits.recovery_most_ns)
        yield f"    new data is usable within {within} of an interruption"
    if limits.back_pressure_most_ns:
        most = format_duration(limits.back_pressure_most_ns)
        yield f"    its publication is at its limit for at most {most}"
    if limits.images_most:
        yield f"    host {observed.to_host} has at most {counted(limits.images_most, 'image')}"
