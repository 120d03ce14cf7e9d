"""One stream of a scenario file: its hosts, channels and content.

These classes validate types and units, and `validation` checks rules that involve several tables.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from windtunnel.harness.scenario.schema.merge import Merge
from windtunnel.harness.scenario.schema.network import HOSTS_MAX
from windtunnel.harness.scenario.schema.pace import Pace
from windtunnel.harness.scenario.schema.table import (
    SIZE_UNITS,
    Bytes,
    ChannelText,
    Duration,
    Name,
    Table,
    one_or_many,
    quantity,
)
from windtunnel.harness.scenario.schema.units import parse_bytes

TRAFFIC_MAX = 256
"""Maximum number of streams in a scenario."""
PATHS_MAX = 64
"""Maximum number of destinations or sources of a stream."""
ALL: Literal["all"] = "all"
"""Keyword for all subscribers of a stream."""
LONGEST: Literal["max"] = "max"
"""Keyword for the maximum message length that the term length allows."""


def _bytes_or_longest(value: object) -> object:
    return value if value == LONGEST else parse_bytes(value)


class MessageLengths(Table):
    """The distribution of message lengths, which is log-uniform between two limits."""

    shortest_bytes: Bytes = Field(default=1, alias="from")
    """Minimum length, at least 1B. Default: 1B."""

    longest_bytes: Annotated[
        int | Literal["max"],
        BeforeValidator(_bytes_or_longest),
        quantity(SIZE_UNITS, "max", word=LONGEST),
    ] = Field(default=LONGEST, alias="to")
    """Maximum length. Default: `max`, an eighth of the term length but at most 16MiB."""


class Content(Table):
    """The content of a stream: messages from the payload file, which is repeated as needed."""

    total_bytes: Bytes = Field(alias="bytes")
    """Total length of all messages; at least 1B."""

    message: MessageLengths = MessageLengths()
    """Lengths of the messages, or one length for all, such as `1408B`. Default: 1B to `max`."""

    pace: Pace | None = None
    """Pace of the publisher. Default: unlimited."""

    close_after_ns: Duration = Field(default=0, alias="close_after")
    """Time for which the publication stays open after the last message. Default: 0s."""


Channels = Annotated[dict[Name, ChannelText], Field(max_length=HOSTS_MAX)]
HostNames = Annotated[tuple[Name, ...], BeforeValidator(one_or_many)]
Texts = Annotated[
    tuple[ChannelText, ...], Field(max_length=PATHS_MAX), BeforeValidator(one_or_many)
]


SENDERS = ("publisher", "replayer")
"""Roles of the processes that send a stream."""


def ends_of(
    role: str,
    sender: str,
    from_hosts: tuple[str, ...],
    to_hosts: tuple[str, ...],
    special: Mapping[str, str | None],
) -> tuple[str, ...]:
    """Return the hosts that run workloads with the given role for a stream.

    `sender` is the role that sends the stream.

    `special` maps each role that neither sends nor subscribes to its host, or to None.
    """
    if role in special:
        host = special[role]
        return (host,) if host else ()
    if role in SENDERS:
        return from_hosts if role == sender else ()
    return to_hosts


def _content_is_optional(schema: dict[str, Any]) -> None:
    schema["required"].remove("content")


class Traffic(Table):
    """A stream with its publishers and subscribers."""

    model_config = ConfigDict(json_schema_extra=_content_is_optional)

    id: Name
    """Name of the stream, unique in the scenario. It is part of the stream's file names."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """The Aeron stream id, which is unique in the scenario."""

    from_hosts: HostNames = Field(alias="from", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The publisher's host, or a list of hosts that all publish the same stream."""

    to_hosts: HostNames = Field(alias="to", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The subscriber's host, or a list of hosts that all receive the whole stream."""

    partial: HostNames = Field(default=(), strict=False, max_length=HOSTS_MAX)
    """Hosts whose subscribers are cut off on purpose and need not receive the whole stream."""

    publication: Literal["exclusive", "concurrent"]
    """Kind of publication: exclusive or concurrent."""

    channel: ChannelText
    """The publisher's channel. `${b}` is the address of host b, and `${self}` is the publisher's
    address.
    """

    channels: Channels = Field(default_factory=dict)
    """Channels of individual publishers by host, which override `channel`."""

    destinations: Texts = Field(default=(), strict=False)
    """Channels that the publisher adds to a publication with `control-mode=manual`."""

    receive: ChannelText
    """The subscriber's channel."""

    receives: Channels = Field(default_factory=dict)
    """Channels of individual subscribers by host, which override `receive`."""

    sources: Texts = Field(default=(), strict=False)
    """Channels that the subscriber adds to a subscription with `control-mode=manual`."""

    content: Content

    starts_with: Annotated[int, Field(ge=1, le=HOSTS_MAX)] | Literal["all"] | None = None
    """How many subscribers the publisher waits for before its first message: a number or `all`.
    Default: as many as the flow control of the channel requires.
    """

    consume: Pace | None = None
    """Pace of the subscriber. Default: unlimited."""

    rejoins: bool = False
    """Whether the stream continues after an interruption: the publisher waits while there is no
    subscriber, and the subscriber accepts the next image, even from a new driver. Default: false,
    so a lost image is a failure.
    """

    replays: Name | None = None
    """Id of a recorded stream that the archive on host `from` replays, in place of a publisher. The
    replay has the recording's content, term length and MTU. Default: the stream is published.
    """

    merges: Merge | None = None
    """Make the subscriber start late and first replay the recording on its host. Default: the
    subscriber starts before the publisher.
    """

    replicated: Name | None = None
    """The host whose archive replicates the recording over the link while it is recorded. Default:
    none.
    """

    recorded: Name | None = None
    """The host whose archive records the stream: a subscriber's or publisher's host. Default: none.
    """

    def ends(self, role: str) -> tuple[str, ...]:
        """Return the hosts that run workloads with this role for the stream."""
        special = {"recorder": self.recorded, "replicator": self.replicated}
        return ends_of(role, self.sender, self.from_hosts, self.to_hosts, special)

    @property
    def archived(self) -> tuple[str, ...]:
        """Return the hosts whose archives record or replicate the stream."""
        return tuple(each for each in (self.recorded, self.replicated) if each is not None)

    @property
    def readers_to_start(self) -> int:
        """Return the number of subscribers that the publisher waits for, or 0 if it does not."""
        if self.starts_with is None:
            return 0
        return len(self.to_hosts) if self.starts_with == ALL else self.starts_with

    @property
    def sender(self) -> str:
        """Return the role of the workloads that send the stream: `publisher` or `replayer`."""
        return "replayer" if self.replays else "publisher"

    @property
    def from_host(self) -> str:
        """Return the first publisher's host."""
        return self.from_hosts[0]

    @property
    def to_host(self) -> str:
        """Return the first subscriber's host."""
        return self.to_hosts[0]
