"""Counts of the relay's drops and the drivers' retransmits during a run, for the progress display.

Each update reads the records that were appended to the decision log and to the counter samples
since the previous update. A count is None until its file exists. Verdicts never depend on these
counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import COUNTER_SAMPLE
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.driver_files.counter_key import RETRANSMITS_SENT

SYSTEM_COUNTER_TYPE = 0


class FaultCounts:
    """The numbers of frames dropped and retransmitted so far in a run, read from the files of the
    run.
    """

    def __init__(self, folder: RunDir, hosts: Iterable[str]) -> None:
        self._decisions = _RecordReader(folder.decisions, DECISION)
        self._counters = [_RetransmitReader(folder.host(host).counter_samples) for host in hosts]
        self.drop_count: int | None = None
        self.retransmit_count: int | None = None

    def update(self) -> None:
        """Update the counts from the records that were appended to the files since the previous
        call.
        """
        decisions = self._decisions.read()
        if decisions is not None:
            dropped = int(np.count_nonzero(decisions["action"] == DROP))
            self.drop_count = (self.drop_count or 0) + dropped
        for counter in self._counters:
            counter.update()
        known = [each.total for each in self._counters if each.total is not None]
        self.retransmit_count = sum(known) if known else None


class _RetransmitReader:
    """Reads how many retransmits a host's driver has sent, and adds the final counts of drivers
    that were killed earlier.
    """

    def __init__(self, path: Path) -> None:
        self._samples = _RecordReader(path, COUNTER_SAMPLE)
        self._generation = 0
        self._earlier = 0
        self._value: int | None = None

    @property
    def total(self) -> int | None:
        return None if self._value is None else self._earlier + self._value

    def update(self) -> None:
        samples = self._samples.read()
        if samples is None:
            return
        if self._samples.generation != self._generation:
            self._generation = self._samples.generation
            self._earlier += self._value or 0
            self._value = 0
        mine = (samples["type_id"] == SYSTEM_COUNTER_TYPE) & (
            samples["counter_id"] == RETRANSMITS_SENT
        )
        if mine.any():
            self._value = int(samples["value"][mine][-1])


class _RecordReader:
    """Reads the records that are appended to a file. If the file is replaced, continues with the
    new file.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._path = path
        self._dtype = dtype
        self._offset = 0
        self._identity: tuple[int, int] | None = None
        self.generation = 0

    def read(self) -> np.ndarray[Any, np.dtype[Any]] | None:
        """Return the records appended to the file since the last call, or None if the file does not
        exist.
        """
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._identity:
                    self._identity, self._offset = (status.st_dev, status.st_ino), 0
                    self.generation += 1
                file.seek(self._offset)
                fresh = file.read()
        except FileNotFoundError:
            return None
        count = len(fresh) // self._dtype.itemsize
        self._offset += count * self._dtype.itemsize
        return np.frombuffer(fresh, dtype=self._dtype, count=count)
