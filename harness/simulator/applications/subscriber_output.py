"""The files of a simulated subscriber, and what writes them.

    messages --> application --> messages, index, times
    frames   --> tap ----------> frames.bin
    at the end --> document

They are those of a subscriber that is a process, with simulated times.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.subscriber import BUFFER_BYTES, Application
from windtunnel.harness.workload.tap import Tap


class SubscriberOutput:
    """What one subscriber writes."""

    def __init__(
        self,
        traffic: TrafficCase,
        host: HostDir,
        clock_ns: Callable[[], int],
        *,
        flips_byte: bool = False,
    ) -> None:
        """Open the files. `flips_byte` corrupts the first message."""
        self._clock_ns = clock_ns
        self._files = files = host.subscriber(traffic.id)
        files.document.parent.mkdir(parents=True, exist_ok=True)
        self._closing = ExitStack()
        messages, index, times, frames = (
            self._closing.enter_context(path.open("wb", buffering=BUFFER_BYTES))
            for path in (files.messages, files.index, files.times, files.frames)
        )
        self.progress = Progress(traffic.total_bytes)
        self.application = Application(
            messages,
            index,
            self.progress,
            traffic.consume,
            clock_ns,
            clock_ns,
            times=times,
            flip_byte=flips_byte,
        )
        self.tap = Tap(frames, traffic.total_bytes, clock_ns)
        self.facts = SubscriberFacts(
            session_id=0,
            stream_id=traffic.stream_id,
            join_position=0,
            end_position=0,
            eos_seen=False,
            message_count=0,
            message_bytes=0,
            started_ns=clock_ns(),
            ended_ns=0,
            error=None,
        )

    def close(self, error: str) -> None:
        """Write the files. `error` describes the failure of the subscriber, or is empty."""
        self._closing.close()
        facts = self.facts
        facts.message_count = self.application.message_count
        facts.message_bytes = self.progress.count_bytes
        facts.ended_ns = facts.ended_ns or self._clock_ns()
        facts.error = error or None
        facts.write(self._files.document)
