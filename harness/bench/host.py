"""Runs a media driver as a process in a directory that is removed afterwards.

    with DriverHost(OURS, settings, folder) as host:
        host.start_up_ns      from just before the process starts until the driver is ready

A driver is ready when a client could connect: the cnc file has a version, and the conductor has
updated its heartbeat. The start-up time includes the start of the Python interpreter, in which our
driver and that of pyaeron run.
"""

import contextlib
import shutil
import time
from pathlib import Path
from typing import Self

from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import DriverSubject, driver_directory, environment
from windtunnel.harness.capture import process_facts
from windtunnel.harness.capture.process_facts import Memory
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError, map_cnc
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes.process import (
    LocalProcess,
    with_parent_death_signal,
)

LOOK_S = 0.0005
START_LIMIT_S = 300.0
"""Start-up timeout in seconds, long enough to compile all kernels."""
END_LIMIT_S = 20.0


class DriverHost:
    """A running media driver, as a context manager."""

    def __init__(self, subject: DriverSubject, settings: BenchSettings, folder: Path) -> None:
        self.subject = subject
        self.directory = driver_directory(settings, folder)
        self.start_up_ns = 0
        self.exit_code: int | None = None
        self._folder = folder
        self._environment = environment(subject, settings, self.directory)
        self._process: LocalProcess | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        started_ns = time.monotonic_ns()
        self._process = LocalProcess(
            self.subject.title,
            with_parent_death_signal(list(self.subject.command)),
            env=self._environment,
            cwd=Path.cwd(),
            log=self._folder / "driver.log",
        )
        try:
            self._wait_until_ready(started_ns + int(START_LIMIT_S * 1e9))
        except BaseException:
            self._end()
            raise
        self.start_up_ns = time.monotonic_ns() - started_ns
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def last_words(self) -> str:
        """Describe how a driver ended: its exit code and the last lines of its output."""
        assert self._process is not None
        return f"exit code {self._process.poll()}: {self._process.tail()}"

    def processor_ns(self) -> int:
        """Return the processor time that the driver has used, or 0 if it has ended."""
        with contextlib.suppress(OSError):
            return process_facts.processor_ns(self.pid)
        return 0

    def memory(self) -> Memory:
        """Return the driver's current memory use, or zeros if the driver has ended."""
        with contextlib.suppress(OSError):
            return process_facts.memory(self.pid)
        return Memory(0, 0)

    def _wait_until_ready(self, deadline_ns: int) -> None:
        assert self._process is not None
        while not self._is_ready():
            code = self._process.poll()
            if code is not None:
                raise LabError(
                    f"{self.subject.title} ended during start-up with exit code {code}: "
                    f"{self._process.tail()}"
                )
            if time.monotonic_ns() > deadline_ns:
                raise LabError(
                    f"{self.subject.title} was not ready within {START_LIMIT_S:g} s: "
                    f"{self._process.tail()}"
                )
            time.sleep(LOOK_S)

    def _is_ready(self) -> bool:
        try:
            cnc = map_cnc(self.directory / "cnc.dat")
        except CncFileError:
            return False
        return cnc is not None and cnc.pid != 0 and int(cnc.heartbeat[0]) > 0

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self.exit_code = self._process.wait(END_LIMIT_S)
            self._process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
