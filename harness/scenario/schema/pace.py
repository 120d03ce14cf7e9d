"""How fast an application publishes or consumes: at most at a rate, and with rests in between.

    pace: {rate: 20MiB/s}                        consume: {rests: {every: 1MiB, for: 150ms}}

    publisher    |####|      |####|      |####|        close
                 ^ 1 MiB     ^ rests 150 ms   ^ close_after ^

All is counted in bytes of whole messages. A rate is a bound, never a promise: the stream may be
slower. Refuses to know how an application waits.
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
    """Pauses of an application, which neither publishes nor polls meanwhile."""

    every_bytes: Bytes = Field(alias="every", ge=1)
    """It rests each time that it has handled so many more bytes of messages."""

    rest_ns: Duration = Field(alias="for", gt=0)
    """How long."""


class Pace(Table):
    """How fast an application is willing to go."""

    bytes_per_s: ByteRate | None = Field(default=None, alias="rate", ge=1)
    """Bytes of messages per second, at most; default as fast as the stream takes them."""

    rests: Rests | None = None
    """Default none."""


class PaceCase(Part):
    """A pace with nothing left open; 0 means that nothing holds the application back."""

    bytes_per_s: int = 0
    rest_every_bytes: int = 0
    rest_ns: int = 0

    @property
    def is_free(self) -> bool:
        """Whether the application goes as fast as it can."""
        return not self.bytes_per_s and not self.rest_every_bytes

    def least_ns(self, total_bytes: int) -> int:
        """The least time that so many bytes take; nobody rests behind the last of them."""
        moving_ns = total_bytes * BILLION // self.bytes_per_s if self.bytes_per_s else 0
        rests = (total_bytes - 1) // self.rest_every_bytes if self.rest_every_bytes else 0
        return moving_ns + rests * self.rest_ns


FREE = PaceCase()
"""As fast as it can."""


def pace_case(pace: Pace | None) -> PaceCase:
    """A pace as a case has it."""
    if pace is None:
        return FREE
    rests = pace.rests
    return PaceCase(
        bytes_per_s=pace.bytes_per_s or 0,
        rest_every_bytes=rests.every_bytes if rests else 0,
        rest_ns=rests.rest_ns if rests else 0,
    )


def pace_problems(
    pace: Pace | None, total_bytes: int, after_ns: int, wall_ns: int, path: Path
) -> Iterator[Problem]:
    """What makes a pace impossible: it says nothing, never rests, or outlasts the budget.

    `after_ns` is what comes behind the last byte.
    """
    if pace is not None and not pace.model_fields_set:
        yield Problem(path, "expected at least one of rate, rests")
        return
    rests = None if pace is None else pace.rests
    if rests is not None and rests.every_bytes >= total_bytes:
        text = f"expected less than the content of {format_bytes(total_bytes)}: it never rests"
        yield Problem((*path, "rests", "every"), text)
    least_ns = pace_case(pace).least_ns(total_bytes) + after_ns
    if least_ns >= wall_ns:
        text = f"takes at least {format_duration(least_ns)}, as long as budget.wall or longer"
        yield Problem(path, f"{text}, {format_duration(wall_ns)}")


def pace_line(pace: PaceCase) -> str:
    """A pace in words."""
    parts = []
    if pace.bytes_per_s:
        parts.append(f"at most {format_byte_rate(pace.bytes_per_s)}")
    if pace.rest_every_bytes:
        rest = format_duration(pace.rest_ns)
        parts.append(f"a rest of {rest} each {format_bytes(pace.rest_every_bytes)}")
    return ", ".join(parts) or "as fast as it can"
