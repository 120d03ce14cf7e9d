"""Streams that a scenario observes: applications send them, so nobody here plans their content.

    observe:
      - {id: orders, stream: 1001, channel: "aeron:udp?endpoint=${b}:24325", from: a, to: b}

Sessions, term lengths and positions come from the captures.
"""

from pydantic import Field

from windtunnel.harness.scenario.schema.table import ChannelText, Name, Table

OBSERVED_MAX = 64


class Observed(Table):
    """A stream of applications that is judged by what the captures and counters show."""

    id: Name
    """Name of the stream, unique among all streams of the scenario."""

    stream_id: int = Field(alias="stream", ge=-(1 << 31), lt=1 << 31)
    """The Aeron stream id."""

    from_host: Name = Field(alias="from")
    """The publication's host."""

    to_host: Name = Field(alias="to")
    """The subscription's host."""

    channel: ChannelText
    """The publication's UDP channel, with an endpoint or a control address. `${b}` is the address
    of host b.
    """
