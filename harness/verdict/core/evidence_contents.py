"""Contents of a run folder, as checks use them: messages, counters and archives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import (
    CounterFacts,
)
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.regular_file import map_bytes
from windtunnel.harness.artifact.run.plan import MessagePlan
from windtunnel.harness.dissect.archive_files.recording_catalog import (
    Catalog,
)
from windtunnel.harness.dissect.driver_files.expected_log import (
    ExpectedLog,
)


@dataclass(frozen=True)
class Planned:
    """The messages that a publisher is expected to send, and the resulting log."""

    plan: MessagePlan
    log: ExpectedLog
    payload: NDArray[np.uint8]


@dataclass(frozen=True)
class Delivered:
    """The messages that a subscriber received."""

    deliveries: Records
    messages: NDArray[np.uint8]
    "The bytes of all messages, concatenated."


@dataclass(frozen=True)
class HostCounters:
    """The counters of one host: their descriptions, and their values over time."""

    counters: list[CounterFacts]
    samples: Records

    def samples_of(self, counter: CounterFacts) -> Records:
        """Return a counter's samples. Counters with the same id have different registration ids."""
        chosen: Records = self.samples[
            (self.samples["counter_id"] == counter.counter_id)
            & (self.samples["registration_id"] == counter.registration_id)
        ]
        return chosen


@dataclass(frozen=True)
class SavedArchive:
    """An archive's directory, saved at the end of the run."""

    catalog: Catalog
    files: dict[int, dict[int, Path]]
    "Segment files by recording id and base position."

    @staticmethod
    def content(path: Path) -> NDArray[np.uint8]:
        """Return the bytes of a segment file."""
        return map_bytes(path)
