"""Subscriptions and their links to the streams that they read.

A link is a sub-pos counter in a stream's position list. When a link is created, the client is
notified of an available image. When the stream ends, the client is notified of an unavailable
image. Removing a subscription sends no notification. A multi-destination subscription may have
local destinations, with which it reads IPC publications or spies on network publications. Source:
spec 3.7, 3.10, 7.3 and 8.2, Aeron 1.53.
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
from windtunnel.driver.command.image import AvailableImage, UnavailableImage
from windtunnel.driver.media_driver.conductor import stream_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.error_codes import logged_code_of

IPC_CHANNEL = "aeron:ipc"
"""The channel in notifications about untethered subscribers, and about the end of an IPC
publication. The C driver sends it in place of the subscription's channel, for any stream."""


class Readable(Protocol):
    """A stream that subscriptions can read: an image or a local publication."""

    registration_id: int
    """The id by which clients identify the stream's log."""
    session_id: int
    stream_id: int
    source_identity: str
    record: np.record
    """The stream's record. Its `first_subscriber` is the first entry of the position list."""

    @property
    def log_path(self) -> Path:
        """Path of the log buffer file that clients map."""

    def join_position(self) -> int:
        """Return the position at which a new subscriber starts to read."""


@dataclass(eq=False)
class Link:
    """A link between a subscription and a stream."""

    subscription: "Subscription"
    stream: Readable
    counter_id: int
    pool_index: int
    is_closed: bool = False
    """Whether the link's position was removed because an untethered subscriber cannot rejoin."""


@dataclass(eq=False)
class Subscription:
    """A client's subscription, or a local destination of a subscription."""

    registration_id: int
    client_id: int
    stream_id: int
    uri: ChannelUri
    channel_text: str
    parameters: SubscriptionParameters
    endpoint: ChannelEndpoint | None = None
    """The channel endpoint, or None for IPC and spies."""
    spied_channel: UdpChannel | None = None
    """The channel that the subscription spies on, or None if it is not a spy."""
    session_id: int | None = None
    """The id of the only accepted session, or None for all sessions. A response subscription sets
    it later."""
    is_response: bool = False
    """Whether this is a response subscription, which accepts no session until `session_id` is
    set."""
    links: list[Link] = field(default_factory=list)
    local_destinations: list["Subscription"] = field(default_factory=list)

    def accepts_session(self, session_id: int) -> bool:
        """Return whether the subscription accepts the session with the given id."""
        if self.session_id is None:
            return not self.is_response
        return self.session_id == session_id

    def is_linked(self, stream: Readable) -> bool:
        """Return whether the subscription is linked to the given stream."""
        return any(link.stream is stream for link in self.links)


class SubscriptionLinks:
    """Creates and removes the links between subscriptions and streams, with the subscriber position
    of each link.
    """

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self.subscriptions: dict[int, Subscription] = {}
        """The clients' subscriptions by registration id."""
        self._links_by_stream: dict[Readable, list[Link]] = {}
        """The links to each stream, oldest first. Timers read them once per stream, without a
        search through the links of all subscriptions."""

    def all(self) -> Iterator[Subscription]:
        """Yield every subscription and every local destination."""
        for subscription in self.subscriptions.values():
            yield subscription
            yield from subscription.local_destinations

    def readers_of(self, stream: Readable) -> list[Link]:
        """Return the links to a stream whose subscriber positions have not been removed."""
        return [link for link in self._links_by_stream.get(stream, ()) if not link.is_closed]

    def link(self, subscription: Subscription, stream: Readable) -> None:
        """Link a subscription to a stream and notify its client. Raises DriverError if no counter
        or no subscriber position is free.
        """
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
        self._links_by_stream.setdefault(stream, []).append(link)
        self.notify_available(link)

    def try_link(self, subscription: Subscription, stream: Readable) -> bool:
        """Link a subscription to a stream. Records a failure in the error log. Returns whether the
        link was created.
        """
        try:
            self.link(subscription, stream)
        except DriverError as error:
            kind = "link of a subscription to a stream"
            self._resources.record_error(logged_code_of(error), f"{kind}: {error}", kind)
            return False
        return True

    def notify_available(self, link: Link) -> None:
        """Notify the client of a linked subscription that an image is available."""
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

    def notify_unavailable(self, link: Link, channel: str | None = None) -> None:
        """Notify the client of a linked subscription that an image is unavailable.

        The notification contains the subscription's channel, or `channel`.
        """
        self._resources.clients.transmit(
            UnavailableImage(
                link.stream.registration_id,
                link.subscription.registration_id,
                link.subscription.stream_id,
                channel or link.subscription.channel_text,
            )
        )

    def unlink_stream(self, stream: Readable, channel: str | None = None) -> None:
        """Remove all links to a stream and notify the subscriptions' clients. See
        `notify_unavailable` for `channel`.
        """
        for link in list(self._links_by_stream.get(stream, ())):
            self._drop(link)
            self.notify_unavailable(link, channel)

    def drop_links(self, stream: Readable) -> None:
        """Remove all links to a stream without notifying the clients."""
        for link in list(self._links_by_stream.get(stream, ())):
            self._drop(link)

    def unlink_subscription(self, subscription: Subscription) -> list[Readable]:
        """Remove a subscription and all its links. Returns the streams to which it was linked."""
        streams = []
        for reader in (subscription, *subscription.local_destinations):
            streams += self.unlink_reader(reader)
        del self.subscriptions[subscription.registration_id]
        return streams

    def unlink_reader(self, reader: Subscription) -> list[Readable]:
        """Remove the links of a subscription or a local destination. Returns the linked streams."""
        streams = [link.stream for link in reader.links]
        for link in list(reader.links):
            self._drop(link)
        return streams

    def close_position(self, link: Link) -> None:
        """Remove a link's subscriber position. The link is kept as closed, so that the subscription
        is not linked to the stream again.
        """
        self._resources.positions.remove(link.stream.record, link.pool_index)
        self._resources.counters.free(link.counter_id)
        link.is_closed = True

    def _drop(self, link: Link) -> None:
        if not link.is_closed:
            self.close_position(link)
        link.subscription.links.remove(link)
        links = self._links_by_stream[link.stream]
        links.remove(link)
        if not links:
            del self._links_by_stream[link.stream]
