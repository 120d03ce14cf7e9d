"""Counts of the relay's drops and the drivers' NAKs during a run, for the progress display.

Each update reads the records that were appended to the decision log and the counter samples since
the last one. Verdicts never depend on these counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP
from windtunnel.harness.artifact.run_dir import RunDir

SYSTEM_COUNTER_TYPE = 0
NAKS_SENT = 5


class FaultCounts:
    """The numbers of drops and NAKs of a run so far, read from its files."""

    def __init__(self, folder: RunDir, hosts: Iterable[str]) -> None:
        self._decisions = _RecordReader(folder.decisions, DECISION)
        self._counters = [
            _RecordReader(folder.host(host).counter_samples, COUNTER_SAMPLE) for host in hosts
        ]
        self._naks = [0] * len(self._counters)
        self.drop_count = 0

    @property
    def nak_count(self) -> int:
        return sum(self._naks)

    def update(self) -> None:
        """Read the records that were appended since the last call."""
        self.drop_count += int(np.count_nonzero(self._decisions.read()["action"] == DROP))
        for index, counters in enumerate(self._counters):
            samples = counters.read()
            is_nak_count = (samples["type_id"] == SYSTEM_COUNTER_TYPE) & (
                samples["counter_id"] == NAKS_SENT
            )
            if is_nak_count.any():
                self._naks[index] = int(samples["value"][is_nak_count][-1])


class _RecordReader:
    """A reader of the records that are appended to a growing file."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path = path
        self._dtype = dtype
        self._offset = 0

    def read(self) -> np.ndarray[Any, np.dtype[Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                fresh = file.read()
        except FileNotFoundError:
            fresh = b""
        count = len(fresh) // self._dtype.itemsize
        self._offset += count * self._dtype.itemsize
        return np.frombuffer(fresh, dtype=self._dtype, count=count)
