"""Observed streams in a resolved case, in the form in which the judge's checks know streams."""

from collections.abc import Mapping

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


def observed_line(observed: TrafficCase) -> str:
    """Return a one-line description of an observed stream."""
    return (
        f"{observed.id}: stream {observed.stream_id} from {observed.from_host} to "
        f"{observed.to_host}, {observed.channel}"
    )
