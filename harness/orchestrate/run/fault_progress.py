"""How much has befallen the streams so far: faults of the relay, NAKs of the drivers.

Reads what has been added to the decision log and to the counter samples since it last looked; for a
display only, a verdict never rests on it.
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


class Weather:
    """Follows the files of one run."""

    def __init__(self, folder: RunDir, hosts: Iterable[str]) -> None:
        self._decisions = _Added(folder.decisions, DECISION)
        self._counters = [
            _Added(folder.host(host).counter_samples, COUNTER_SAMPLE) for host in hosts
        ]
        self._naks = [0] * len(self._counters)
        self.drop_count = 0

    @property
    def nak_count(self) -> int:
        return sum(self._naks)

    def look(self) -> None:
        """Take in what has been added."""
        self.drop_count += int(np.count_nonzero(self._decisions.read()["action"] == DROP))
        for index, counters in enumerate(self._counters):
            samples = counters.read()
            of_naks = (samples["type_id"] == SYSTEM_COUNTER_TYPE) & (
                samples["counter_id"] == NAKS_SENT
            )
            if of_naks.any():
                self._naks[index] = int(samples["value"][of_naks][-1])


class _Added:
    """The whole records that a growing file has gained since the last call."""

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
