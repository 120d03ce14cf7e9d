"""One stream as a scenario file has it: from whom to whom, over which channels, and what is sent.

Shape and units are checked here; what is well-formed and yet cannot happen is found by `sense`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from windtunnel.harness.scenario.schema.merge import Merge
from windtunnel.harness.scenario.schema.network import HOSTS_MAX
from windtunnel.harness.scenario.schema.pace import Pace
from windtunnel.harness.scenario.schema.table import (
    NUMBER,
    Bytes,
    Duration,
    Name,
    Table,
    one_or_many,
    quantity,
)
from windtunnel.harness.scenario.schema.units import parse_bytes

LONGEST: Literal["max"] = "max"
"""In place of a message length: the longest that the term length allows."""


def _bytes_or_longest(value: object) -> object:
    return value if value == LONGEST else parse_bytes(value)


class MessageLengths(Table):
    """How long messages are: any doubling from the least to the most is equally likely."""

    shortest_bytes: Bytes = Field(default=1, alias="from")
    """Bytes; default 1B, at least 1B."""

    longest_bytes: Annotated[
        int | Literal["max"],
        BeforeValidator(_bytes_or_longest),
        quantity(NUMBER + "(B|KiB|MiB|GiB)$|^max$", "max"),
    ] = Field(default=LONGEST, alias="to")
    """Bytes; default and bound `max`, the lesser of an eighth of the term and 16MiB."""


class Content(Table):
    """What a publisher sends: the payload file, over and over."""

    total_bytes: Bytes = Field(alias="bytes")
    """Sum of all message lengths, in bytes; at least 1B."""

    message: MessageLengths = MessageLengths()

    pace: Pace | None = None
    """How fast it publishes; default as fast as the stream takes it."""

    close_after_ns: Duration = Field(default=0, alias="close_after")
    """How long the publication stays open behind the last message; default 0s."""


Channels = dict[Name, str]
Partners = Annotated[tuple[Name, ...], BeforeValidator(one_or_many)]
Texts = Annotated[tuple[str, ...], BeforeValidator(one_or_many)]


SENDERS = ("publisher", "replayer")
"""Roles of those at the sending end of a stream."""


def ends_of(
    role: str,
    sender: str,
    from_hosts: tuple[str, ...],
    to_hosts: tuple[str, ...],
    special: Mapping[str, str | None],
) -> tuple[str, ...]:
    """The hosts on which a workload of a role is at work on a stream that is sent by `sender`.

    `special` has the one host, if any, of each role that is at neither end.
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
    """One stream: who publishes it, and who reads it."""

    model_config = ConfigDict(json_schema_extra=_content_is_optional)

    id: Name
    """Unique in the scenario; names the files of this traffic."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """The Aeron stream id; unique in the scenario."""

    from_hosts: Partners = Field(alias="from", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The publisher's host; of several each sends the very same stream."""

    to_hosts: Partners = Field(alias="to", strict=False, min_length=1, max_length=HOSTS_MAX)
    """The subscriber's host, or a list: each reads the whole stream."""

    partial: Partners = Field(default=(), strict=False)
    """Subscribers that are cut off on purpose, and need not come to the stream's end."""

    publication: Literal["exclusive", "concurrent"]
    """The kind of publication."""

    channel: str
    """The publisher's channel; `${b}` stands for the address of host b, `${self}` for its own."""

    channels: Channels = Field(default_factory=dict)
    """In place of `channel` for some of several publishers, by host."""

    destinations: Texts = Field(default=(), strict=False)
    """Channels that the publisher adds to a publication with `control-mode=manual`."""

    receive: str
    """The subscriber's channel."""

    receives: Channels = Field(default_factory=dict)
    """In place of `receive` for some of several subscribers, by host."""

    sources: Texts = Field(default=(), strict=False)
    """Channels that the subscriber adds to a subscription with `control-mode=manual`."""

    content: Content

    consume: Pace | None = None
    """How fast the subscriber consumes; default as fast as messages come."""

    rejoins: bool = False
    """Whether the stream goes on when it was cut: the publisher waits while nobody listens, the
    subscriber takes up the next image, even from a new driver. Default false: a lost image is a
    failure."""

    replays: Name | None = None
    """The id of a recorded stream that the archive on host `from` sends again, in the place of a
    publisher; its `content` and its geometry are this one's too. Default: it is published."""

    merges: Merge | None = None
    """The subscriber comes late, and reads from the recording on its own host first; default it is
    there before anybody publishes."""

    replicated: Name | None = None
    """The host whose archive copies the recording, over the link, while it is made; default nobody
    does."""

    recorded: Name | None = None
    """The host whose archive records the stream: a subscriber's, or the publisher's own; default
    nobody records it."""

    def ends(self, role: str) -> tuple[str, ...]:
        """The hosts on which a workload of this role is at work on it."""
        special = {"recorder": self.recorded, "replicator": self.replicated}
        return ends_of(role, self.sender, self.from_hosts, self.to_hosts, special)

    @property
    def archived(self) -> tuple[str, ...]:
        """The hosts whose archives have it in the end."""
        return tuple(each for each in (self.recorded, self.replicated) if each is not None)

    @property
    def sender(self) -> str:
        """The role of the workloads at its sending end."""
        return "replayer" if self.replays else "publisher"

    @property
    def from_host(self) -> str:
        """The first publisher's host."""
        return self.from_hosts[0]

    @property
    def to_host(self) -> str:
        """The first subscriber's host."""
        return self.to_hosts[0]
