"""Streams that a scenario observes. Applications send them, so their content is not planned.

    observe:
      - {id: orders, stream: 1001, channel: "aeron:udp?endpoint=${b}:24325", from: a, to: b}

Sessions, term lengths and positions come from the captures.
"""

from pydantic import Field

from windtunnel.harness.scenario.schema.table import ByteRate, ChannelText, Duration, Name, Table

OBSERVED_MAX = 64


IMAGES_MAX = 1000


class StreamLimits(Table):
    """What a stream must reach, in each of its sessions. Each limit is a check of its own."""

    least_bytes_per_s: ByteRate | None = Field(default=None, alias="goodput_at_least", gt=0)
    """Payload bytes that arrived, by the time from the first frame that was sent to the last new
    one that arrived, such as 200KiB/s. Default: no limit.
    """

    silence_most_ns: Duration | None = Field(default=None, alias="silence_at_most", gt=0)
    """The longest time in which no new data became usable, that is in order and without a gap
    before it. Default: no limit.
    """

    recovery_most_ns: Duration | None = Field(default=None, alias="recovers_within", gt=0)
    """The longest time from the end of a partition, or of a pause or kill on one of the stream's
    hosts, until new data is usable. Default: no limit.
    """

    back_pressure_most_ns: Duration | None = Field(
        default=None, alias="back_pressure_at_most", gt=0
    )
    """The longest time for which the publication is at its limit before it goes on. Default: no
    limit.
    """

    images_most: int | None = Field(default=None, alias="images_at_most", ge=1, le=IMAGES_MAX)
    """The number of images of a session at its subscription's host: 1 if none may be lost and
    replaced. Default: no limit.
    """


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

    expect: StreamLimits = StreamLimits()
    """What the stream must reach. Default: no limits."""
