"""Applications that wait for an archive. They run the routines of the workloads step by step.

RoutineApplication      recorder, replayer, replicator: files as in their processes
MergingSubscriber       a late subscriber that merges a replay into the live stream
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from windtunnel.harness.simulator.applications.subscriber_output import SubscriberOutput
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.archive.archive_workload import ArchiveWorkload
from windtunnel.harness.workload.archive.merging import read_merged
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import MOMENT_NS, Routine, Surroundings


class SteppedRoutine:
    """A routine that the simulator runs while virtual time passes. Base class of applications."""

    def __init__(self, routine: Routine[None], clock_ns: Callable[[], int]) -> None:
        self._routine, self._clock_ns = routine, clock_ns
        self._until_ns = 0
        self.is_done = False

    def step(self) -> int:
        """Run the routine until it waits, unless it still waits.

        Returns the time of the next step, AT_ONCE, or NEVER at its end.
        """
        if self.is_done:
            return NEVER
        now_ns = self._clock_ns()
        if now_ns >= self._until_ns:
            try:
                wait_ns = next(self._routine)
            except StopIteration:
                self.is_done = True
                return AT_ONCE
            self._until_ns = now_ns + (MOMENT_NS if wait_ns is None else wait_ns)
        return self._until_ns


class RoutineApplication(SteppedRoutine):
    """A recorder, replayer or replicator."""

    count_bytes = 0

    def __init__(self, options: Options, surroundings: Surroundings) -> None:
        self.role, self.traffic = options.role, options.traffic
        self.is_ready = False
        """Whether a recorder no longer misses anything that is published."""
        noting = replace(surroundings, on_ready=self._note_ready)
        self._workload = ArchiveWorkload(options, noting)
        super().__init__(self._workload.routine, surroundings.epoch_ns)

    def _note_ready(self) -> None:
        self.is_ready = True

    def close(self, error: str) -> None:
        """Write the document. `error` describes the failure that ended it, or is empty."""
        self._workload.close(error or None)


class MergingSubscriber(SteppedRoutine):
    """A subscriber that replays a recording and merges into the live stream."""

    role = "subscriber"

    def __init__(self, options: Options, surroundings: Surroundings, *, flips_byte: bool) -> None:
        """`flips_byte` corrupts the first message."""
        self.traffic, clock_ns = options.traffic, surroundings.epoch_ns
        self._output = SubscriberOutput(
            options.traffic, options.files, clock_ns, flips_byte=flips_byte
        )
        merging = read_merged(options, self._output.application, self._output.facts, surroundings)
        super().__init__(merging, clock_ns)

    @property
    def count_bytes(self) -> int:
        """Return the number of bytes in the complete messages that were delivered."""
        return self._output.progress.count_bytes

    def close(self, error: str) -> None:
        """Write the files. `error` describes the failure of the subscriber, or is empty."""
        self._output.close(error)
