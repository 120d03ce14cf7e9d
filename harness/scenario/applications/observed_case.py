"""Observed streams in a resolved case, in the form in which the judge's checks know streams."""

from collections.abc import Mapping, Sequence

from windtunnel.harness.scenario.applications.observe import Observed
from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.channel import SELF, fill_in, parse_channel


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
    )


def found_case(
    stream_id: int, from_host: str, to_host: str, address: str, ports: Sequence[int], name: str
) -> TrafficCase:
    """Return a stream that was found in the captures, in the same form. `address` and `ports` are
    those to which its data went.
    """
    channel = f"aeron:udp?endpoint={address}:{ports[0]}"
    ends = {"from": from_host, "to": to_host}
    observed = Observed(id="found", stream=stream_id, channel=channel, **ends)
    made = observed_case(observed, {from_host: ""})
    several = tuple(ports) if len(ports) > 1 else ()
    return made.model_copy(update={"id": name, "found": True, "ports": several})


def observed_line(observed: TrafficCase) -> str:
    """Return a one-line description of an observed stream."""
    return (
        f"{observed.id}: stream {observed.stream_id} from {observed.from_host} to "
        f"{observed.to_host}, {observed.channel}"
    )
