"""The pace of an application: a maximum rate, and pauses (YAML key `rests`).

    pace: {rate: 20MiB/s}                        consume: {rests: {every: 1MiB, for: 150ms}}

    publisher    |####|      |####|      |####|        close
                 ^ 1 MiB     ^ pauses 150 ms  ^ close_after ^

Counts are in bytes of complete messages. A rate is an upper limit: the stream may be slower.
"""

from collections.abc import Iterator

from pydantic import Field

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import ByteRate, Bytes, Duration, Table
from windtunnel.harness.scenario.schema.units import (
    BILLION,
    format_byte_rate,
    format_bytes,
    format_duration,
)


class Rests(Table):
    """Pauses during which the application neither publishes nor polls."""

    every_bytes: Bytes = Field(alias="every", ge=1)
    """Number of message bytes after which each pause begins."""

    rest_ns: Duration = Field(alias="for", gt=0)
    """Duration of each pause."""


class Pace(Table):
    """The maximum rate and the pauses of an application."""

    bytes_per_s: ByteRate | None = Field(default=None, alias="rate", ge=1)
    """Maximum rate in message bytes per second, or in messages per second such as `20000 msg/s` if
    all messages have one length. Default: unlimited.
    """

    rests: Rests | None = None
    """Pauses. Default: none."""


class PaceCase(Part):
    """An application's pace in a resolved case. 0 means no limit."""

    bytes_per_s: int = 0
    rest_every_bytes: int = 0
    rest_ns: int = 0

    @property
    def is_unlimited(self) -> bool:
        """Return whether there is neither a maximum rate nor a pause."""
        return not self.bytes_per_s and not self.rest_every_bytes

    def least_ns(self, total_bytes: int) -> int:
        """Return the minimum time in which an application publishes or consumes `total_bytes`. The
        pause after the last message does not count.
        """
        sending_ns = total_bytes * BILLION // self.bytes_per_s if self.bytes_per_s else 0
        pauses = (total_bytes - 1) // self.rest_every_bytes if self.rest_every_bytes else 0
        return sending_ns + pauses * self.rest_ns


UNLIMITED = PaceCase()
"""A pace without a maximum rate and without pauses."""


def pace_case(pace: Pace | None) -> PaceCase:
    """Convert a pace of a scenario file to the form used in a resolved case. None becomes
    UNLIMITED.
    """
    if pace is None:
        return UNLIMITED
    rests = pace.rests
    return PaceCase(
        bytes_per_s=pace.bytes_per_s or 0,
        rest_every_bytes=rests.every_bytes if rests else 0,
        rest_ns=rests.rest_ns if rests else 0,
    )


def pace_problems(
    pace: Pace | None, total_bytes: int, after_ns: int, wall_ns: int, path: Path
) -> Iterator[Problem]:
    """Yield a problem for a pace that is empty, whose pauses never occur, or that exceeds the time
    budget.

    `after_ns` is the time for which the stream stays open after the last message.
    """
    if pace is not None and not pace.model_fields_set:
        yield Problem(path, "expected at least one of rate, rests")
        return
    rests = None if pace is None else pace.rests
    if rests is not None and rests.every_bytes >= total_bytes:
        text = (
            f"expected less than the content of {format_bytes(total_bytes)}: it would never pause"
        )
        yield Problem((*path, "rests", "every"), text)
    least_ns = pace_case(pace).least_ns(total_bytes) + after_ns
    if least_ns >= wall_ns:
        text = f"expected a duration below budget.wall ({format_duration(wall_ns)})"
        yield Problem(path, f"{text}, found at least {format_duration(least_ns)}")


def pace_line(pace: PaceCase) -> str:
    """Return a one-line description of a pace."""
    parts = []
    if pace.bytes_per_s:
        parts.append(f"at most {format_byte_rate(pace.bytes_per_s)}")
    if pace.rest_every_bytes:
        rest = format_duration(pace.rest_ns)
        parts.append(f"a pause of {rest} every {format_bytes(pace.rest_every_bytes)}")
    return ", ".join(parts) or "as fast as possible"
