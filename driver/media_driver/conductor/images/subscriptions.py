"""Subscriptions and their links to the streams that they read.

A link is a sub-pos counter in the position list of a stream. When a link is created, the client is
notified of an available image; when the stream ends first, of an unavailable image. Removing a
subscription sends no such notification. A multi-destination subscription may have local
destinations, which read IPC publications or spy on network publications for it.
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
    """The id of the stream's log for clients."""
    session_id: int
    stream_id: int
    source_identity: str
    record: np.record
    """Its `first_subscriber` is the head of the position list."""

    @property
    def log_path(self) -> Path:
        """The file that clients map."""

    def join_position(self) -> int:
        """Return the start position of a new subscriber."""


@dataclass(eq=False)
class Link:
    """A link between a subscription and a stream."""

    subscription: "Subscription"
    stream: Readable
    counter_id: int
    pool_index: int
    is_closed: bool = False
    """An untethered subscriber fell behind and may not rejoin: it has no position any more."""


@dataclass(eq=False)
class Subscription:
    """A subscription of a client, or a local destination of one."""

    registration_id: int
    client_id: int
    stream_id: int
    uri: ChannelUri
    channel_text: str
    parameters: SubscriptionParameters
    endpoint: ChannelEndpoint | None = None
    """None for IPC and spies."""
    spied_channel: UdpChannel | None = None
    """The channel of a spy."""
    session_id: int | None = None
    """The only session accepted, or None for all; set late for a response subscription."""
    is_response: bool = False
    """A response subscription without a session id yet, which accepts no session."""
    links: list[Link] = field(default_factory=list)
    local_destinations: list["Subscription"] = field(default_factory=list)

    def accepts_session(self, session_id: int) -> bool:
        """Return whether the subscription accepts a session."""
        if self.session_id is None:
            return not self.is_response
        return self.session_id == session_id

    def is_linked(self, stream: Readable) -> bool:
        """Return whether the subscription is linked to a stream."""
        return any(link.stream is stream for link in self.links)


class SubscriptionLinks:
    """Creates and removes links and their positions."""

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self.subscriptions: dict[int, Subscription] = {}
        """Subscriptions of clients by registration id."""

    def all(self) -> Iterator[Subscription]:
        """Yield every subscription and every local destination."""
        for subscription in self.subscriptions.values():
            yield subscription
            yield from subscription.local_destinations

    def readers_of(self, stream: Readable) -> list[Link]:
        """Return the links to a stream that have a position."""
        return [
            link
            for subscription in self.all()
            for link in subscription.links
            if link.stream is stream and not link.is_closed
        ]

    def link(self, subscription: Subscription, stream: Readable) -> None:
        """Link a subscription to a stream and notify its client. Raises DriverError."""
        position = stream.join_position()
        counter_id = self._resources.counters.stream(
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
        now_ns = self._resources.clock.now_ns()
        try:
            index = self._resources.positions.add(stream.record, counter_id, now_ns)
        except StorageError:
            self._resources.counters.free(counter_id)
            raise
        link = Link(subscription, stream, counter_id, index)
        subscription.links.append(link)
        self.notify_available(link)

    def try_link(self, subscription: Subscription, stream: Readable) -> bool:
        """Link as `link` does, but record a failure in the error log. Returns whether it linked."""
        try:
            self.link(subscription, stream)
        except DriverError as error:
            self._resources.record_error(ErrorCode.GENERIC_ERROR, str(error))
            return False
        return True

    def notify_available(self, link: Link) -> None:
        """Notify the client of an available image."""
        stream = link.stream
        self._resources.clients.transmit(
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

    def notify_unavailable(self, link: Link) -> None:
        """Notify the client of an unavailable image."""
        self._resources.clients.transmit(
            UnavailableImage(
                link.stream.registration_id,
                link.subscription.registration_id,
                link.subscription.stream_id,
                link.subscription.channel_text,
            )
        )

    def unlink_stream(self, stream: Readable) -> None:
        """Remove all links to a stream and notify the clients."""
        for subscription in self.all():
            for link in [item for item in subscription.links if item.stream is stream]:
                self._drop(link)
                self.notify_unavailable(link)

    def drop_links(self, stream: Readable) -> None:
        """Remove all links to a stream without a notification."""
        for subscription in self.all():
            for link in [item for item in subscription.links if item.stream is stream]:
                self._drop(link)

    def unlink_subscription(self, subscription: Subscription) -> list[Readable]:
        """Remove a subscription and all its links. Returns the streams that it was linked to."""
        streams = []
        for reader in (subscription, *subscription.local_destinations):
            streams += self.unlink_reader(reader)
        del self.subscriptions[subscription.registration_id]
        return streams

    def unlink_reader(self, reader: Subscription) -> list[Readable]:
        """Remove the links of a subscription or local destination. Returns its streams."""
        streams = [link.stream for link in reader.links]
        for link in list(reader.links):
            self._drop(link)
        return streams

    def close_position(self, link: Link) -> None:
        """Remove the position of a link; the link remains, so that it is not created again."""
        self._resources.positions.remove(link.stream.record, link.pool_index)
        self._resources.counters.free(link.counter_id)
        link.is_closed = True

    def _drop(self, link: Link) -> None:
        if not link.is_closed:
            self.close_position(link)
        link.subscription.links.remove(link)
