"""A subscriber that comes late: it reads a recording first, and goes over to the live stream.

    recorded     |---------------- recording ---------------- - -
    subscriber             | replay ------------> live ------ - -
                         after                 merged

Refuses to know how the two become one: that is the work of the archive's client.
"""

from collections.abc import Iterator

from pydantic import Field

from windtunnel.harness.scenario.schema.channel import SELF, parse_channel, placeholders
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import Bytes, Table
from windtunnel.harness.scenario.schema.units import format_bytes


class Merge(Table):
    """How a subscriber goes over from a recording to the live stream."""

    after_bytes: Bytes = Field(alias="after", ge=1)
    """It begins to read when so much of the stream is recorded."""

    live: str
    """The channel of the live stream that it adds when it has caught up; its endpoint is a port
    of its own on the subscriber's host."""


class MergeCase(Part):
    """The same with nothing left open."""

    after_bytes: int
    live: str
    port: int
    """To which the live stream comes."""


def merge_problems(
    merge: Merge, host: str, hosts: tuple[str, ...], others: set[int], total_bytes: int, path: Path
) -> Iterator[Problem]:
    """What is wrong with a merge on `host`; `others` are the ports of the recorded stream."""
    if merge.after_bytes >= total_bytes:
        text = f"expected less than the content, {format_bytes(total_bytes)}: none would be live"
        yield Problem((*path, "after"), text)
    unknown = [each for each in placeholders(merge.live) if each not in (*hosts, SELF)]
    if unknown:
        yield Problem((*path, "live"), f"no host {unknown[0]!r}: the hosts are {', '.join(hosts)}")
        return
    try:
        channel = parse_channel(merge.live)
        port, control = channel.endpoint_port, channel.control
    except ValueError as error:
        yield Problem((*path, "live"), str(error))
        return
    if channel.endpoint_host not in (f"${{{host}}}", f"${{{SELF}}}"):
        text = f"expected endpoint=${{{SELF}}}:PORT, found {channel.endpoint_host}"
        yield Problem((*path, "live"), text)
    if control is None:
        text = "expected control=HOST:PORT, where the publisher hears of new readers"
        yield Problem((*path, "live"), text)
    if port in others:
        text = f"port {port} is the recorded stream's: expected one of its own"
        yield Problem((*path, "live"), text)


def merge_line(merge: MergeCase) -> str:
    """A merge in words."""
    return f"once {format_bytes(merge.after_bytes)} are recorded, replayed, then live: {merge.live}"
