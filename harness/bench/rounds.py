"""Ours, C, ours, C, ...: the drivers take turns, so that what the machine does meanwhile hits both.

    unmeasured    the first driver goes through every case, the others start and end once: whatever
                  is compiled or read from a cold disk, is so here
    round 1..n    each driver is started anew and measured in every case; then each archive, in an
                  empty directory; then the swarm, which has drivers of its own

All files lie in a folder of their own that is gone afterwards, whatever happens.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from windtunnel.harness.bench.archive import check_room, measure_archive
from windtunnel.harness.bench.archive_host import ArchiveHost, ArchiveSubject, archives
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.measure import Reading, free_ports, measure
from windtunnel.harness.bench.plan import SWARM, BenchSettings
from windtunnel.harness.bench.subject import SUBJECTS, C, DriverSubject, c_version
from windtunnel.harness.bench.swarm import OURS, measure_swarm
from windtunnel.harness.orchestrate.lab import LabError

UNMEASURED_S = 0.2
UNMEASURED = -1
"""Index of the round that counts for nothing."""

OnReading = Callable[[Reading], None]
OnStart = Callable[[int, DriverSubject | ArchiveSubject], None]


def run_rounds(settings: BenchSettings, on_start: OnStart, on_reading: OnReading) -> list[Reading]:
    """Measure everything. Raises LabError when a driver cannot be started."""
    subjects = [SUBJECTS[name] for name in settings.drivers if name in SUBJECTS]
    subjects = subjects if settings.chosen() else []
    keepers, _ = archives(settings)
    if C in subjects and c_version() is None:
        raise LabError(
            "the real C driver comes with pyaeron, which is not installed; "
            "`--drivers ours` measures ours alone"
        )
    readings: list[Reading] = []
    with _folder() as folder:
        short = replace(settings, seconds=UNMEASURED_S, warm_up_s=UNMEASURED_S)
        for index, subject in enumerate(subjects):
            on_start(UNMEASURED, subject)
            cases = settings.cases if index == 0 else ("startup",)
            for _ in _measure_all(subject, replace(short, cases=cases), folder, UNMEASURED):
                pass
        if keepers:
            check_room(folder, settings)
            on_start(UNMEASURED, keepers[0])
            for _ in _measure_archives(keepers[0], short, folder, UNMEASURED):
                pass
        for round_index in range(settings.rounds):
            for subject in subjects:
                on_start(round_index, subject)
                for reading in _measure_all(subject, settings, folder, round_index):
                    readings.append(reading)
                    on_reading(reading)
            for keeper in keepers:
                on_start(round_index, keeper)
                for reading in _measure_archives(keeper, settings, folder, round_index):
                    readings.append(reading)
                    on_reading(reading)
            if SWARM in settings.cases and OURS in settings.drivers:
                reading = measure_swarm(settings, folder / f"{SWARM}-{round_index}", round_index)
                readings.append(reading)
                on_reading(reading)
    return readings


def _measure_all(
    subject: DriverSubject, settings: BenchSettings, parent: Path, round_index: int
) -> Iterator[Reading]:
    folder = parent / f"{subject.name}-{round_index}"
    with DriverHost(subject, settings, folder) as host:
        for case in settings.chosen():
            yield measure(case, host, settings, folder / case.name, round_index)
            if not host.is_alive:
                break
    shutil.rmtree(folder, ignore_errors=True)


def _measure_archives(
    subject: ArchiveSubject, settings: BenchSettings, parent: Path, round_index: int
) -> Iterator[Reading]:
    folder = parent / f"archive-{subject.name}-{round_index}"
    (port,) = free_ports(1)
    control_channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
    with ArchiveHost(subject, settings, folder, control_channel) as host:
        for case in settings.archive_cases():
            yield measure_archive(case, host, settings, folder / case.name, round_index)
            if not host.is_alive:
                break
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder in shared memory where there is any: logs on a disk would measure the disk."""
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="windtunnel-bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
