"""Workloads that are generators and yield whenever they wait, so that they run both in a process of
their own and on virtual time.

    yield LOOK_NS                                            waits for this long, in nanoseconds
    end = yield from listing.stop_position(session, 0)       yields None: waits for a moment

A process sleeps meanwhile. In the simulator, virtual time passes.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.base.system import NS_PER_SECOND
from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.progress import print_line
from windtunnel.harness.workload.stop import Stop, Stopped

_RESULT = TypeVar("_RESULT")

Routine: TypeAlias = Generator[int | None, None, _RESULT]
"""A workload, or a part of one. It yields the time in nanoseconds for which it waits, or None."""

MOMENT_NS = 200_000
"""Time between two polls of what takes only a moment, such as the response of an archive."""


@dataclass(frozen=True)
class Surroundings:
    """The driver and the clocks of a workload."""

    connect: Callable[[], Aeron | None]
    """Creates a client. Returns None if no driver is running, which only the simulator knows."""
    clock: Clock
    """The clock of the clients."""
    epoch_ns: Callable[[], int]
    """Returns the nanoseconds since the epoch, for the times in documents."""
    on_ready: Callable[[], None]
    """Called once the workload no longer misses anything that is published."""

    @classmethod
    def of_process(cls, options: Options) -> "Surroundings":
        """Return the surroundings of a workload that is a process."""
        return cls(
            connect=lambda: Aeron(options.aeron_dir),
            clock=SystemClock(),
            epoch_ns=time.time_ns,
            on_ready=lambda: print_line("ready"),
        )


def connected(surroundings: Surroundings) -> Routine[Aeron]:
    """Wait until a driver is running. Returns a new client."""
    while (client := surroundings.connect()) is None:
        yield None
    return client


def run(
    routine: Routine[_RESULT], stop: Stop, on_step: Callable[[], object] = lambda: None
) -> _RESULT:
    """Run a routine to its end in this process, and return its result. `on_step` is called when it
    waits. Raises Stopped if a stop signal arrives, once the routine has released what it uses.
    """
    try:
        while True:
            wait_ns = next(routine)
            on_step()
            time.sleep((MOMENT_NS if wait_ns is None else wait_ns) / NS_PER_SECOND)
            try:
                stop.check()
            except Stopped as stopped:
                routine.throw(stopped)
    except StopIteration as end:
        result: _RESULT = end.value
        return result
