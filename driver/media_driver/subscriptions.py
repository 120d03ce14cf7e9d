"""Subscriptions, and which logs each of them reads: the links between readers and streams.

A link is a reader's sub-pos counter in the list of the stream it reads. When it is made, the client
hears of an available image; when the stream goes first, of an unavailable one. Removing a
subscription says nothing about its images, as its client knows. Source: spec 3.10, 7.3 and 8.2,
Aeron 1.53.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from driver.base.errors import StorageError
from driver.channel.subscription_parameters import SubscriptionParameters
from driver.channel.uri import ChannelUri
from driver.command.image import AvailableImage, UnavailableImage
from driver.media_driver import stream_counters
from driver.media_driver.channel_endpoints import ChannelEndpoint
from driver.media_driver.facilities import Facilities


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

    stream: Readable
    counter_id: int
    pool_index: int


@dataclass(eq=False)
class Subscription:
    """What a client asked to hear."""

    registration_id: int
    client_id: int
    stream_id: int
    uri: ChannelUri
    channel_text: str
    parameters: SubscriptionParameters
    endpoint: ChannelEndpoint | None = None
    """None for IPC and spies."""
    spied_form: str = ""
    """Canonical form of the channel that a spy looks at."""
    links: list[Link] = field(default_factory=list)

    def wants_session(self, session_id: int) -> bool:
        """Whether its channel lets this session through."""
        return self.parameters.session_id in (None, session_id)

    def is_linked(self, stream: Readable) -> bool:
        """Whether it reads this stream already."""
        return any(link.stream is stream for link in self.links)


class SubscriptionLinks:
    """Makes and breaks links; the lists of positions follow."""

    def __init__(self, parts: Facilities) -> None:
        self._parts = parts
        self.subscriptions: dict[int, Subscription] = {}

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
        try:
            index = self._parts.positions.add(stream.record, counter_id)
        except StorageError:
            self._parts.counters.free(counter_id)
            raise
        subscription.links.append(Link(stream, counter_id, index))
        self._parts.clients.tell(
            AvailableImage(
                stream.registration_id,
                stream.session_id,
                stream.stream_id,
                subscription.registration_id,
                counter_id,
                str(stream.log_path),
                stream.source_identity,
            )
        )

    def unlink_stream(self, stream: Readable) -> None:
        """A stream goes away: its readers are told."""
        for subscription in self.subscriptions.values():
            for link in [item for item in subscription.links if item.stream is stream]:
                self._drop(subscription, link)
                self._parts.clients.tell(
                    UnavailableImage(
                        stream.registration_id,
                        subscription.registration_id,
                        subscription.stream_id,
                        subscription.channel_text,
                    )
                )

    def unlink_subscription(self, subscription: Subscription) -> list[Readable]:
        """A subscription goes away: its streams lose a reader. Returns those streams."""
        streams = [link.stream for link in subscription.links]
        for link in list(subscription.links):
            self._drop(subscription, link)
        del self.subscriptions[subscription.registration_id]
        return streams

    def _drop(self, subscription: Subscription, link: Link) -> None:
        self._parts.positions.remove(link.stream.record, link.pool_index)
        self._parts.counters.free(link.counter_id)
        subscription.links.remove(link)
