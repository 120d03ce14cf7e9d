"""From the channels of a replication request to those that are really used.

    to record     replication channel, rejoin=false, session-id of the replay; merged later with a
                  live stream: control-mode=manual, without endpoint, and a destination for each
    to replay     replication channel with the port that was found, and the same session-id
    to ask        both ends with one session-id, short terms

Source: archive-protocol 2.2, 7.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.channel import uri, uri_param
from windtunnel.driver.channel.uri import ChannelUri

RESPONSE = "response"
MANUAL = "manual"


def is_response(channel: ChannelUri) -> bool:
    """Whether it is answered through a channel that its reader opens."""
    return channel.get(uri_param.CONTROL_MODE) == RESPONSE


def control_channel(text: str, settings: ArchiveSettings) -> ChannelUri:
    """A channel to ask or answer by, with what it does not say. Raises ConfigurationError."""
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
    """Where other archives answer, unless a request says so: on our host, on any port."""
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
    "Of channel and subscription, where they were asked for."

    @property
    def is_response(self) -> bool:
        return is_response(self.channel)

    @property
    def has_destinations(self) -> bool:
        """Whether the subscription is told where its streams come from, one by one."""
        return self.tags is not None or bool(self.live_destination)

    def to_record(self, session_id: int, replication_id: int) -> ChannelUri:
        """What is subscribed to."""
        channel = self.channel.with_param(uri_param.REJOIN, False)
        if not self.is_response:
            channel = channel.with_param(uri_param.SESSION_ID, session_id)
        if self.has_destinations:
            given = self.tags or (-1, -1)
            tags = ",".join(str(replication_id if tag == -1 else tag) for tag in given)
            channel = channel.without(uri_param.ENDPOINT)
            channel = channel.with_param(uri_param.TAGS, tags)
            channel = channel.with_param(uri_param.CONTROL_MODE, MANUAL)
        return channel

    @property
    def replay_destination(self) -> str:
        """Where the replay arrives at a subscription with destinations."""
        keys = (uri_param.ENDPOINT, uri_param.INTERFACE)
        params = tuple(item for item in self.channel.params if item[0] in keys)
        return str(ChannelUri(self.channel.media, params))

    def to_replay(
        self, session_id: int, subscription_id: int, resolved_endpoint: str | None
    ) -> ChannelUri:
        """What the other archive is asked to replay to."""
        channel = self.channel
        endpoint = channel.get(uri_param.ENDPOINT)
        if endpoint is not None and resolved_endpoint is not None and endpoint.endswith(":0"):
            port = resolved_endpoint.rpartition(":")[2]
            found = f"{endpoint.rpartition(':')[0]}:{port}"
            channel = channel.with_param(uri_param.ENDPOINT, found)
        if self.live_destination:
            channel = channel.with_param(uri_param.LINGER, 0).with_param(uri_param.EOS, False)
        if self.is_response:
            return channel.with_param(uri_param.RESPONSE_CORRELATION_ID, subscription_id)
        return channel.with_param(uri_param.SESSION_ID, session_id)
