"""Replay merge: a late subscriber first replays a recording, then joins the live stream.

    recorded     |---------------- recording ---------------- - -
    subscriber             | replay ------------> live ------ - -
                         after                 merged

The archive client performs the merge.
"""

from collections.abc import Iterator

from pydantic import Field

from windtunnel.harness.scenario.schema.channel import (
    SELF,
    check_parameters,
    parse_channel,
    placeholders,
)
from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import Bytes, ChannelText, Table
from windtunnel.harness.scenario.schema.units import format_bytes


class Merge(Table):
    """How a subscriber switches from a recording to the live stream."""

    after_bytes: Bytes = Field(alias="after", ge=1)
    """Number of recorded bytes of the stream after which the subscriber starts."""

    live: ChannelText
    """The live stream's channel, which is added when the replay has caught up. Its endpoint must
    use a separate port on the subscriber's host.
    """


class MergeCase(Part):
    """A replay merge in a resolved case."""

    after_bytes: int
    live: str
    port: int
    """UDP port of the live stream."""


def merge_problems(
    merge: Merge, host: str, hosts: tuple[str, ...], others: set[int], total_bytes: int, path: Path
) -> Iterator[Problem]:
    """Yield the problems with a replay merge on `host`. `others` contains the ports that the
    recorded stream already uses.
    """
    if merge.after_bytes >= total_bytes:
        text = f"expected less than the content of {format_bytes(total_bytes)}"
        yield Problem((*path, "after"), text)
    unknown = [each for each in placeholders(merge.live) if each not in (*hosts, SELF)]
    if unknown:
        text = f"expected one of the hosts {', '.join(hosts)}, found {unknown[0]!r}"
        yield Problem((*path, "live"), text)
        return
    try:
        channel = parse_channel(merge.live)
        check_parameters(channel)
        port, control = channel.endpoint_port, channel.control
    except ValueError as error:
        yield Problem((*path, "live"), str(error))
        return
    if channel.endpoint_host not in (f"${{{host}}}", f"${{{SELF}}}"):
        text = f"expected endpoint=${{{SELF}}}:PORT, found {channel.endpoint_host}"
        yield Problem((*path, "live"), text)
    if control is None:
        text = "expected control=HOST:PORT (the publisher's address for new subscribers)"
        yield Problem((*path, "live"), text)
    if port in others:
        text = f"the recorded stream uses port {port}: choose another port"
        yield Problem((*path, "live"), text)


def merge_line(merge: MergeCase) -> str:
    """Return a one-line description of a merge."""
    recorded = format_bytes(merge.after_bytes)
    return f"after {recorded} has been recorded, replays it, then joins {merge.live}"
