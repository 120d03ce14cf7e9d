"""A stream in a resolved case: its hosts, channels, positions and content.

    Traffic + addresses --resolve_traffic--> TrafficCase --flows--> one for each pair of hosts

The judge and the workloads use flows. A flow has one publisher and one subscriber. A stream between
two hosts has one flow, which is the stream itself.
"""

from collections.abc import Mapping
from typing import Literal

from windtunnel.harness.scenario.schema.channel import SELF, WINDOW_BYTES, fill_in, parse_channel
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.scenario.schema.pace import UNLIMITED, PaceCase, pace_case
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Name, OptionalName
from windtunnel.harness.scenario.schema.traffic import LONGEST, Traffic, ends_of
from windtunnel.harness.scenario.validation.traffic_validation import longest_message


class StreamLimitsCase(Part):
    """The limits of an observed stream in a resolved case. 0 means that there is none."""

    least_bytes_per_s: int = 0
    silence_most_ns: int = 0
    recovery_most_ns: int = 0
    back_pressure_most_ns: int = 0
    images_most: int = 0


class TrafficCase(Part):
    """A stream in a resolved case.

    If there are several publishers or subscribers, singular fields refer to the first one. `flows`
    contains the stream once for each pair, with singular fields only.
    """

    id: Name
    ordinal: int
    """Index of the stream in the case's streams, sorted by stream id."""
    stream_id: int
    from_host: Name
    to_host: Name
    publication: Literal["exclusive", "concurrent"]
    channel: str
    receive: str
    port: int
    """UDP port on the subscriber's host."""
    reliable: bool
    term_length: int
    mtu: int
    initial_term_id: int | None
    """The initial term id, or None if the driver chooses it."""
    initial_position: int
    receiver_window_bytes: int | None
    """The receiver window, or None for the driver's default."""
    total_bytes: int
    shortest_bytes: int
    longest_bytes: int
    from_hosts: tuple[Name, ...] = ()
    """All publishers if there are several, else empty."""
    to_hosts: tuple[Name, ...] = ()
    """All subscribers if there are several, else empty."""
    partial: tuple[Name, ...] = ()
    """Hosts whose subscribers need not receive the whole stream."""
    channels: tuple[tuple[str, str], ...] = ()
    """Host and channel of each publisher if there are several, else empty."""
    receives: tuple[tuple[str, str], ...] = ()
    """Host and channel of each subscriber if there are several, else empty."""
    destinations: tuple[str, ...] = ()
    """Destinations that the publisher adds to its publication."""
    sources: tuple[tuple[str, str], ...] = ()
    """Host and channel of each destination that a subscriber adds to its subscription."""
    ports: tuple[int, ...] = ()
    """All UDP ports of the stream, or empty if `port` is the only one."""
    pace: PaceCase = UNLIMITED
    """Pace of the publisher."""
    close_after_ns: int = 0
    """Time for which the publication stays open after the last message."""
    consume: PaceCase = UNLIMITED
    """Pace of the subscriber."""
    rejoins: bool = False
    """Whether the stream continues after an interruption."""
    observed: bool = False
    """Whether an application publishes the stream, so that its content is unknown."""
    found: bool = False
    """Whether an observed stream was found in the captures, so that its channel is unknown."""
    session_id: int | None = None
    """The only session of an observed stream that is judged, or None for the last one."""
    session_port: int | None = None
    """The receiver's UDP port, if the session was sent to several of its ports, else None."""
    session_span_ns: tuple[int, int] | None = None
    """When the publication sent, if it is one of several of the session, one after the other."""
    limits: StreamLimitsCase | None = None
    """What an observed stream must reach."""
    starts_with: int = 0
    """Number of subscribers that the publishers wait for before their first message, or 0."""
    replays: OptionalName = ""
    """Id of the stream whose recording is replayed, or empty for a published stream."""
    merges: MergeCase | None = None
    """The subscriber's replay merge, if any."""
    replicated: OptionalName = ""
    """The host whose archive replicates the recording, or empty."""
    recorded: OptionalName = ""
    """The host whose archive records the stream, or empty."""

    @property
    def window_bytes(self) -> int:
        """The receiver window that the driver uses: it is limited to half of the term."""
        return min(self.receiver_window_bytes or WINDOW_BYTES, self.term_length // 2)

    @property
    def publishers(self) -> tuple[str, ...]:
        return self.from_hosts or (self.from_host,)

    @property
    def subscribers(self) -> tuple[str, ...]:
        return self.to_hosts or (self.to_host,)

    @property
    def all_ports(self) -> tuple[int, ...]:
        return self.ports or (self.port,)

    @property
    def flows(self) -> tuple["TrafficCase", ...]:
        """Return the stream's flows, one for each pair of a publisher and a subscriber."""
        return tuple(
            self.between(publisher, subscriber)
            for subscriber in self.subscribers
            for publisher in self.publishers
        )

    def between(self, publisher: str, subscriber: str) -> "TrafficCase":
        """Return the flow from one publisher to one subscriber."""
        if (publisher, subscriber) == (self.from_host, self.to_host):
            return self
        channel = dict(self.channels).get(publisher, self.channel)
        receive = dict(self.receives).get(subscriber, self.receive)
        return self.model_copy(
            update={
                "from_host": publisher,
                "to_host": subscriber,
                "channel": channel,
                "receive": receive,
            }
        )

    def ends(self, role: str) -> tuple[str, ...]:
        """Return the hosts that run workloads with this role for the stream."""
        sender = "replayer" if self.replays else "publisher"
        special = {"recorder": self.recorded, "replicator": self.replicated}
        return ends_of(role, sender, self.publishers, self.subscribers, special)

    @property
    def archived(self) -> tuple[str, ...]:
        """Return the hosts whose archives record or replicate the stream."""
        return tuple(each for each in (self.recorded, self.replicated) if each)

    @property
    def plan_id(self) -> str:
        """Return the id of the stream that defines the messages: the replayed stream, or this
        stream if it is not a replay.

        A replay uses the original's plan.
        """
        return self.replays or self.id

    def at(self, host: str) -> "TrafficCase":
        """Return the flow (from one publisher to one subscriber) in which a workload on this host
        takes part.
        """
        if host in self.publishers:
            return self.between(host, self.to_host)
        return self.between(self.from_host, host)

    @property
    def role(self) -> str:
        """Return a unique name of the flow: the stream's id, plus the hosts if the stream has
        several flows.
        """
        text = self.id
        if len(self.publishers) > 1:
            text += f" from {self.from_host}"
        return f"{text} at {self.to_host}" if len(self.subscribers) > 1 else text


def resolve_traffic(
    traffic: Traffic,
    ordinal: int,
    addresses: Mapping[str, str],
    replayed: Traffic | None = None,
) -> TrafficCase:
    """Fill in a stream's defaults and addresses. A replay has the replayed stream's content."""
    channels = {each: traffic.channels.get(each, traffic.channel) for each in traffic.from_hosts}
    receives = {each: traffic.receives.get(each, traffic.receive) for each in traffic.to_hosts}
    publishers, subscribers = (len(each) > 1 for each in (traffic.from_hosts, traffic.to_hosts))
    channel = parse_channel(replayed.channel if replayed else channels[traffic.from_host])
    receive = parse_channel(receives[traffic.to_host])
    sources = [parse_channel(each) for each in traffic.sources]
    listening = receive if receive.has_endpoint else sources[0]
    pace = traffic.content.pace if replayed is None else None
    parsed = [parse_channel(each) for each in (*channels.values(), *receives.values())]
    merge = traffic.merges
    if merge is not None:
        parsed.append(parse_channel(merge.live))
    ports = {port for each in (*parsed, *sources) for port in each.ports}
    message = traffic.content.message
    longest = message.longest_bytes
    if longest == LONGEST:
        longest = longest_message(channel.term_length)

    def filled(text: str, host: str) -> str:
        return fill_in(text, {**addresses, SELF: addresses[host]})

    merges = None
    if merge is not None:
        port = parse_channel(merge.live).endpoint_port
        live = filled(merge.live, traffic.to_host)
        merges = MergeCase(after_bytes=merge.after_bytes, live=live, port=port)
    return TrafficCase(
        id=traffic.id,
        ordinal=ordinal,
        stream_id=traffic.stream_id,
        from_host=traffic.from_host,
        to_host=traffic.to_host,
        publication=traffic.publication,
        channel=filled(channels[traffic.from_host], traffic.from_host),
        receive=filled(receives[traffic.to_host], traffic.to_host),
        port=listening.endpoint_port,
        reliable=receive.reliable,
        term_length=channel.term_length,
        mtu=channel.mtu,
        initial_term_id=channel.initial_term_id,
        initial_position=channel.initial_position,
        receiver_window_bytes=receive.receiver_window_bytes,
        total_bytes=traffic.content.total_bytes,
        shortest_bytes=message.shortest_bytes,
        longest_bytes=longest,
        from_hosts=traffic.from_hosts if publishers else (),
        to_hosts=traffic.to_hosts if subscribers else (),
        partial=traffic.partial,
        channels=tuple((h, filled(text, h)) for h, text in channels.items()) if publishers else (),
        receives=tuple((h, filled(text, h)) for h, text in receives.items()) if subscribers else (),
        destinations=tuple(filled(each, traffic.from_host) for each in traffic.destinations),
        sources=tuple((h, filled(each, h)) for h in traffic.to_hosts for each in traffic.sources),
        ports=() if ports == {listening.endpoint_port} else tuple(sorted(ports)),
        pace=pace_case(pace),
        close_after_ns=0 if replayed else traffic.content.close_after_ns,
        consume=pace_case(traffic.consume),
        rejoins=traffic.rejoins,
        starts_with=traffic.readers_to_start,
        replays=traffic.replays or "",
        merges=merges,
        replicated=traffic.replicated or "",
        recorded=traffic.recorded or "",
    )
