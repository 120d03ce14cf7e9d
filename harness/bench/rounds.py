"""Runs benchmark rounds, in which the drivers alternate so that other load on the machine affects
them equally.

    unmeasured    the first driver runs every case, the others start and stop once, so that
                  compilation and cold disk reads happen here
    round 1..n    each driver is restarted and measured in every case, and restarted again for cases
                  that need another environment; then each archive, in an empty directory; then the
                  swarm, which uses separate drivers

All files are in a temporary folder that is always removed afterwards.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from windtunnel.harness.bench.archive import check_room, measure_archive
from windtunnel.harness.bench.archive_host import ArchiveHost, ArchiveSubject, archives
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.measure import Reading, measure
from windtunnel.harness.bench.plan import SWARM, BenchSettings, by_environment
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.bench.subject import C, DriverSubject, c_version, subjects
from windtunnel.harness.bench.swarm import OURS, measure_swarm
from windtunnel.harness.orchestrate.lab import LabError

UNMEASURED_S = 0.2
UNMEASURED = -1
"""Index of the first round, which is not measured."""

OnReading = Callable[[Reading], None]
OnStart = Callable[[int, DriverSubject | ArchiveSubject], None]


def run_rounds(settings: BenchSettings, on_start: OnStart, on_reading: OnReading) -> list[Reading]:
    """Measure all selected cases in all rounds. Raises LabError if a driver cannot be started."""
    drivers = subjects(settings)
    archive_subjects, _ = archives(settings)
    if C in drivers and c_version() is None:
        raise LabError(
            "the real C driver comes with pyaeron, which is not installed: "
            "use `--drivers ours` to measure only Windtunnel's driver"
        )
    readings: list[Reading] = []
    with ExitStack() as stack:
        folder = stack.enter_context(_folder(_shared_memory()))
        if settings.memory:
            memory = stack.enter_context(_folder(Path(settings.memory)))
            settings = replace(settings, memory=str(memory))
        short = replace(settings, seconds=UNMEASURED_S, warm_up_s=UNMEASURED_S)
        for index, subject in enumerate(drivers):
            on_start(UNMEASURED, subject)
            cases = settings.cases if index == 0 else ("startup",)
            for _ in _measure_all(subject, replace(short, cases=cases), folder, UNMEASURED):
                pass
        if archive_subjects:
            check_room(folder, settings)
            on_start(UNMEASURED, archive_subjects[0])
            for _ in _measure_archives(archive_subjects[0], short, folder, UNMEASURED):
                pass
        for round_index in range(settings.rounds):
            for subject in drivers:
                on_start(round_index, subject)
                for reading in _measure_all(subject, settings, folder, round_index):
                    readings.append(reading)
                    on_reading(reading)
            for archive_subject in archive_subjects:
                on_start(round_index, archive_subject)
                for reading in _measure_archives(archive_subject, settings, folder, round_index):
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
    for number, (variables, cases) in enumerate(by_environment(settings.chosen())):
        folder = parent / f"{subject.name}-{round_index}-{number}"
        own = replace(settings, both_set=settings.both_set | dict(variables))
        with DriverHost(subject, own, folder) as host:
            for case in cases:
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


def _shared_memory() -> Path | None:
    """Return a parent for files that the disk would affect, or None without shared memory."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else None


@contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    """Context manager that creates a temporary folder in `parent`, or in the system's folder for
    temporary files.
    """
    path = Path(tempfile.mkdtemp(prefix="windtunnel-bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
