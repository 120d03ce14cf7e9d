"""One stream of a case with nothing left open: its channels, and who is at its ends.

    Traffic + addresses --resolve_traffic--> TrafficCase --flows--> one for each pair of hosts

Whoever judges or runs one end of a stream takes a flow, in which there is one publisher and one
subscriber; of a stream between two hosts there is one flow, the stream itself.
"""

from collections.abc import Mapping
from typing import Literal

from windtunnel.harness.scenario.schema.channel import SELF, fill_in, parse_channel
from windtunnel.harness.scenario.schema.merge import MergeCase
from windtunnel.harness.scenario.schema.pace import FREE, PaceCase, pace_case
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Name, OptionalName
from windtunnel.harness.scenario.schema.traffic import LONGEST, Traffic, ends_of
from windtunnel.harness.scenario.validation.traffic_validation import longest_message


class TrafficCase(Part):
    """One stream: who sends what to whom.

    Of several publishers or subscribers the fields in the singular tell of the first; `flows` has
    the stream once for each pair, in the singular throughout.
    """

    id: Name
    ordinal: int
    """Place among the case's streams in order of stream id, from 0."""
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
    """None when the driver chooses it."""
    initial_position: int
    receiver_window_bytes: int | None
    """None when the driver's default holds."""
    total_bytes: int
    shortest_bytes: int
    longest_bytes: int
    from_hosts: tuple[Name, ...] = ()
    """All publishers where there are several."""
    to_hosts: tuple[Name, ...] = ()
    """All subscribers where there are several."""
    partial: tuple[Name, ...] = ()
    """Subscribers that need not come to the end."""
    channels: tuple[tuple[str, str], ...] = ()
    """Each publisher's channel, where one of them has another."""
    receives: tuple[tuple[str, str], ...] = ()
    """Each subscriber's channel, where one of them has another."""
    destinations: tuple[str, ...] = ()
    """What the publisher adds to its publication."""
    sources: tuple[tuple[str, str], ...] = ()
    """What each subscriber adds to its subscription: its host, and a channel."""
    ports: tuple[int, ...] = ()
    """All UDP ports of the stream, where there are more than `port`."""
    pace: PaceCase = FREE
    """Of the publisher."""
    close_after_ns: int = 0
    """How long the publication stays open behind its last message."""
    consume: PaceCase = FREE
    """Of the subscriber."""
    rejoins: bool = False
    """Whether the stream goes on when it was cut."""
    replays: OptionalName = ""
    """The id of the stream whose recording is sent here again; empty where it is published."""
    merges: MergeCase | None = None
    """How its subscriber comes late."""
    replicated: OptionalName = ""
    """The host whose archive copies that recording; empty when nobody does."""
    recorded: OptionalName = ""
    """The host whose archive records it; empty when nobody does."""

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
        """The stream from each publisher to each subscriber."""
        return tuple(
            self.between(publisher, subscriber)
            for subscriber in self.subscribers
            for publisher in self.publishers
        )

    def between(self, publisher: str, subscriber: str) -> "TrafficCase":
        """The stream from one of its publishers to one of its subscribers."""
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
        """The hosts on which a workload of this role is at work on it."""
        sender = "replayer" if self.replays else "publisher"
        special = {"recorder": self.recorded, "replicator": self.replicated}
        return ends_of(role, sender, self.publishers, self.subscribers, special)

    @property
    def archived(self) -> tuple[str, ...]:
        """The hosts whose archives have it in the end."""
        return tuple(each for each in (self.recorded, self.replicated) if each)

    @property
    def plan_id(self) -> str:
        """The id by which its messages are planned: a replay sends those of another stream."""
        return self.replays or self.id

    def at(self, host: str) -> "TrafficCase":
        """The stream as a workload at one of its ends sees it."""
        if host in self.publishers:
            return self.between(host, self.to_host)
        return self.between(self.from_host, host)

    @property
    def role(self) -> str:
        """The stream's id, with the host or the hosts that make this flow one of several."""
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
    """Spell a stream out; one that is replayed says how the replay's terms are."""
    channels = {each: traffic.channels.get(each, traffic.channel) for each in traffic.from_hosts}
    receives = {each: traffic.receives.get(each, traffic.receive) for each in traffic.to_hosts}
    publishers, subscribers = (len(each) > 1 for each in (traffic.from_hosts, traffic.to_hosts))
    channel = parse_channel(replayed.channel if replayed else channels[traffic.from_host])
    receive = parse_channel(receives[traffic.to_host])
    sources = [parse_channel(each) for each in traffic.sources]
    heard = receive if receive.has_endpoint else sources[0]
    pace = traffic.content.pace if replayed is None else None
    named = [parse_channel(each) for each in (*channels.values(), *receives.values())]
    merge = traffic.merges
    if merge is not None:
        named.append(parse_channel(merge.live))
    ports = {port for each in (*named, *sources) for port in each.ports}
    message = traffic.content.message
    longest = message.longest_bytes
    if longest == LONGEST:
        longest = longest_message(channel.term_length)

    def filled(text: str, host: str) -> str:
        return fill_in(text, {**addresses, SELF: addresses[host]})

    return TrafficCase(
        id=traffic.id,
        ordinal=ordinal,
        stream_id=traffic.stream_id,
        from_host=traffic.from_host,
        to_host=traffic.to_host,
        publication=traffic.publication,
        channel=filled(channels[traffic.from_host], traffic.from_host),
        receive=filled(receives[traffic.to_host], traffic.to_host),
        port=heard.endpoint_port,
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
        ports=() if ports == {heard.endpoint_port} else tuple(sorted(ports)),
        pace=pace_case(pace),
        close_after_ns=0 if replayed else traffic.content.close_after_ns,
        consume=pace_case(traffic.consume),
        rejoins=traffic.rejoins,
        replays=traffic.replays or "",
        merges=None
        if merge is None
        else MergeCase(
            after_bytes=merge.after_bytes,
            live=filled(merge.live, traffic.to_host),
            port=parse_channel(merge.live).endpoint_port,
        ),
        replicated=traffic.replicated or "",
        recorded=traffic.recorded or "",
    )
