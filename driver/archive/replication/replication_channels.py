"""Derives the channels of a replication from its request.

    to record     replication channel, rejoin=false, session-id of the replay; if a live stream is
                  merged: control-mode=manual, no endpoint, and a destination for each source
    to replay     replication channel with the resolved port, and the same session-id
    control       request and response channel with one session-id, short terms

Source: archive-protocol 2.2, 7.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.channel.uri import ChannelUri

RESPONSE = "response"
MANUAL = "manual"


def is_response(channel: ChannelUri) -> bool:
    """Return whether a channel has `control-mode=response`."""
    return channel.get(uri_param.CONTROL_MODE) == RESPONSE


def control_channel(text: str, settings: ArchiveSettings) -> ChannelUri:
    """Parse a control channel and add default parameters. Raises ConfigurationError if the channel
    is invalid.
    """
    channel = uri.parse(text)
    for key, value in (
        (uri_param.TERM_LENGTH, settings.control_term_buffer_length),
        (uri_param.MTU_LENGTH, settings.control_mtu_length),
        (uri_param.SPARSE, True),
    ):
        if key not in channel:
            channel = channel.with_param(key, value)
    return channel


def response_channel(settings: ArchiveSettings) -> str:
    """Return the channel for responses from other archives. The default is a free port on this
    host.
    """
    if settings.control_response_channel:
        return settings.control_response_channel
    endpoint = uri.parse(settings.control_channel).get(uri_param.ENDPOINT) or ""
    return f"aeron:udp?endpoint={endpoint.rpartition(':')[0]}:0"


@dataclass(frozen=True)
class ReplicationChannels:
    """The channels of one replication."""

    channel: ChannelUri
    live_destination: str
    tags: tuple[int, int] | None
    """The tags of the channel and the subscription, or None if the request has no tags."""

    @property
    def is_response(self) -> bool:
        return is_response(self.channel)

    @property
    def has_destinations(self) -> bool:
        """Return whether the subscription has `control-mode=manual`, so destinations must be added
        to it.
        """
        return self.tags is not None or bool(self.live_destination)

    def to_record(self, session_id: int, replication_id: int) -> ChannelUri:
        """Return the channel of the subscription that is recorded."""
        channel = self.channel.with_param(uri_param.REJOIN, False)
        if not self.is_response:
            channel = channel.with_param(uri_param.SESSION_ID, session_id)
        if self.has_destinations:
            requested = self.tags or (-1, -1)
            tags = ",".join(str(replication_id if tag == -1 else tag) for tag in requested)
            channel = channel.without(uri_param.ENDPOINT)
            channel = channel.with_param(uri_param.TAGS, tags)
            channel = channel.with_param(uri_param.CONTROL_MODE, MANUAL)
        return channel

    @property
    def replay_destination(self) -> str:
        """The destination through which the subscription receives the replay."""
        keys = (uri_param.ENDPOINT, uri_param.INTERFACE)
        params = tuple(item for item in self.channel.params if item[0] in keys)
        return str(ChannelUri(self.channel.media, params))

    def to_replay(
        self, session_id: int, subscription_id: int, resolved_endpoint: str | None
    ) -> ChannelUri:
        """Return the channel on which the source archive must replay."""
        channel = self.channel
        endpoint = channel.get(uri_param.ENDPOINT)
        if endpoint is not None and resolved_endpoint is not None and endpoint.endswith(":0"):
            port = resolved_endpoint.rpartition(":")[2]
            resolved = f"{endpoint.rpartition(':')[0]}:{port}"
            channel = channel.with_param(uri_param.ENDPOINT, resolved)
        if self.live_destination:
            channel = channel.with_param(uri_param.LINGER, 0).with_param(uri_param.EOS, False)
        if self.is_response:
            return channel.with_param(uri_param.RESPONSE_CORRELATION_ID, subscription_id)
        return channel.with_param(uri_param.SESSION_ID, session_id)
