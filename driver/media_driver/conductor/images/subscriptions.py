"""Subscriptions, and which logs each of them reads: the links between readers and streams.

A link is a reader's sub-pos counter in the list of the stream it reads. When it is made, the client
hears of an available image; when the stream goes first, of an unavailable one. Removing a
subscription says nothing about its images, as its client knows. A multi-destination subscription
may have local destinations, which read IPC publications or spy on network ones in its name.
Source: spec 3.7, 3.10, 7.3 and 8.2, Aeron 1.53.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.channel.subscription_parameters import SubscriptionParameters
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint


class Readable(Protocol):
    """A stream that subscriptions can read: an image, or a local publication."""

    registration_id: int
    """What clients know the stream's log by."""
    session_id: int
    stream_id: int
    source_identity: str
    record: np.record
    """Whose `first_subscriber` is the list of readers."""

    @property
    def log_path(self) -> Path:
        """The file that clients map."""

    def join_position(self) -> int:
        """Where a new reader starts."""


@dataclass(eq=False)
class Link:
    """One reader of one stream."""

    subscription: "Subscription"
    stream: Readable
    counter_id: int
    pool_index: int
    is_closed: bool = False
    """An untethered reader that fell behind and may not rejoin: it has no position any more."""


@dataclass(eq=False)
class Subscription:
    """What a client asked to hear, or a local destination of such a one."""

    registration_id: int
    client_id: int
    stream_id: int
    uri: ChannelUri
    channel_text: str
    parameters: SubscriptionParameters
    endpoint: ChannelEndpoint | None = None
    """None for IPC and spies."""
    spied_channel: UdpChannel | None = None
    """What a spy looks at."""
    session_id: int | None = None
    """The only session that it wants; a response subscription learns it when it is set up."""
    is_response: bool = False
    """A response subscription that has not learnt its session yet wants none."""
    links: list[Link] = field(default_factory=list)
    local_destinations: list["Subscription"] = field(default_factory=list)

    def wants_session(self, session_id: int) -> bool:
        """Whether its channel lets this session through."""
        if self.session_id is None:
            return not self.is_response
        return self.session_id == session_id

    def is_linked(self, stream: Readable) -> bool:
        """Whether it reads this stream already."""
        return any(link.stream is stream for link in self.links)


class SubscriptionLinks:
    """Makes and breaks links; the lists of positions follow."""

    def __init__(self, parts: DriverResources) -> None:
        self._parts = parts
        self.subscriptions: dict[int, Subscription] = {}
        """What clients asked for, by registration id."""

    def all(self) -> Iterator[Subscription]:
        """Every subscription, and every local destination of one."""
        for subscription in self.subscriptions.values():
            yield subscription
            yield from subscription.local_destinations

    def readers_of(self, stream: Readable) -> list[Link]:
        """The links to a stream that have a position."""
        return [
            link
            for subscription in self.all()
            for link in subscription.links
            if link.stream is stream and not link.is_closed
        ]

    def link(self, subscription: Subscription, stream: Readable) -> None:
        """Let a subscription read a stream from now on, and tell its client."""
        position = stream.join_position()
        counter_id = self._parts.counters.stream(
            stream_counters.SUBSCRIBER_POSITION,
            subscription.registration_id,
            subscription.client_id,
            stream.session_id,
            stream.stream_id,
            subscription.channel_text,
            suffix=f" @{position}",
            reference_id=stream.registration_id,
            value=position,
        )
        now_ns = self._parts.clock.now_ns()
        try:
            index = self._parts.positions.add(stream.record, counter_id, now_ns)
        except StorageError:
            self._parts.counters.free(counter_id)
            raise
        link = Link(subscription, stream, counter_id, index)
        subscription.links.append(link)
        self.tell_available(link)

    def try_link(self, subscription: Subscription, stream: Readable) -> bool:
        """`link` where nobody can be refused any more: the subscription goes without the stream.

        Returns whether there is a link.
        """
        try:
            self.link(subscription, stream)
        except DriverError as error:
            self._parts.record_error(ErrorCode.GENERIC_ERROR, str(error))
            return False
        return True

    def tell_available(self, link: Link) -> None:
        """Tell the reader's client that it may read."""
        stream = link.stream
        self._parts.clients.tell(
            AvailableImage(
                stream.registration_id,
                stream.session_id,
                stream.stream_id,
                link.subscription.registration_id,
                link.counter_id,
                str(stream.log_path),
                stream.source_identity,
            )
        )

    def tell_unavailable(self, link: Link) -> None:
        """Tell the reader's client that there is nothing to read any more."""
        self._parts.clients.tell(
            UnavailableImage(
                link.stream.registration_id,
                link.subscription.registration_id,
                link.subscription.stream_id,
                link.subscription.channel_text,
            )
        )

    def unlink_stream(self, stream: Readable) -> None:
        """A stream goes away: its readers are told."""
        for subscription in self.all():
            for link in [item for item in subscription.links if item.stream is stream]:
                self._drop(link)
                self.tell_unavailable(link)

    def forget_stream(self, stream: Readable) -> None:
        """A stream whose readers were told before is gone."""
        for subscription in self.all():
            for link in [item for item in subscription.links if item.stream is stream]:
                self._drop(link)

    def unlink_subscription(self, subscription: Subscription) -> list[Readable]:
        """A subscription goes away: its streams lose a reader. Returns those streams."""
        streams = []
        for reader in (subscription, *subscription.local_destinations):
            streams += self.unlink_reader(reader)
        del self.subscriptions[subscription.registration_id]
        return streams

    def unlink_reader(self, reader: Subscription) -> list[Readable]:
        """Break the links of a subscription, or of one local destination. Returns its streams."""
        streams = [link.stream for link in reader.links]
        for link in list(reader.links):
            self._drop(link)
        return streams

    def close_position(self, link: Link) -> None:
        """Take a reader's position away; the link remains, so that it is not made anew."""
        self._parts.positions.remove(link.stream.record, link.pool_index)
        self._parts.counters.free(link.counter_id)
        link.is_closed = True

    def _drop(self, link: Link) -> None:
        if not link.is_closed:
            self.close_position(link)
        link.subscription.links.remove(link)
