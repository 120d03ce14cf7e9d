"""An archive of Windtunnel as a process beside a media driver, which can be killed and restarted.

    with ArchiveProcess(folder, control_channel) as archive:
        archive.start()
        archive.kill()          SIGKILL
        archive.start()         with the same files

The driver runs until the end, so that other clients keep their streams while the archive is dead.
"""

import contextlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from windtunnel.harness.bench.archive_host import archive_settings, our_environment
from windtunnel.harness.bench.host import END_LIMIT_S, START_LIMIT_S, DriverHost
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import OURS
from windtunnel.harness.capture import process_facts
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes.process import (
    LocalProcess,
    with_parent_death_signal,
)
from windtunnel.harness.orchestrate.run.archives import PROGRAM, is_ready_line

SEGMENT_LENGTH = 128 << 10
MARK_FILE = "archive-mark.dat"
ACTIVITY_OFFSET = 16
"""Offset of the activity time in a mark file. Source: archive-protocol 4.5."""
AGE_MS = 60_000
LOOK_S = 0.002
SETTINGS = {
    "AERON_TERM_BUFFER_SPARSE_FILE": "true",
    "AERON_TERM_BUFFER_LENGTH": "65536",
    "AERON_IPC_TERM_BUFFER_LENGTH": "65536",
    "AERON_TIMER_INTERVAL": "100ms",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    # A killed archive is a client that ends without a word.
    "AERON_CLIENT_LIVENESS_TIMEOUT": "2s",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "2s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "3s",
    "AERON_COUNTERS_BUFFER_LENGTH": str(8 << 20),
    "AERON_CONDUCTOR_IDLE_STRATEGY": "sleep-ns",
    "AERON_SENDER_IDLE_STRATEGY": "sleep-ns",
    "AERON_RECEIVER_IDLE_STRATEGY": "sleep-ns",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_ARCHIVE_IDLE_STRATEGY": "sleep-ns",
    "AERON_ARCHIVE_SEGMENT_FILE_LENGTH": str(SEGMENT_LENGTH),
    "AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD": "1m",
}
"""Environment variables of the archive and of its driver."""


class ArchiveProcess:
    """An archive and its driver. The driver runs while the context manager is entered."""

    def __init__(
        self, folder: Path, control_channel: str, more: Mapping[str, str] | None = None
    ) -> None:
        settings = BenchSettings(threading_mode="SHARED", both_set=SETTINGS | dict(more or {}))
        self.folder, self.control_channel = folder, control_channel
        self.driver = DriverHost(OURS, settings, folder)
        self._environment = our_environment(
            archive_settings(settings, folder, control_channel), settings
        )
        self._process: LocalProcess | None = None
        self._log_length = 0

    def __enter__(self) -> Self:
        self.driver.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.kill()
        self.driver.__exit__(*error)

    @property
    def directory(self) -> Path:
        """The directory of the archive."""
        return self.folder / "archive"

    @property
    def log(self) -> Path:
        """The file with the archive's output."""
        return self.folder / "archive.log"

    def launch(self) -> LocalProcess:
        """Start the archive without waiting for it."""
        assert self._process is None
        self._age_mark_file()
        self._log_length = self.log.stat().st_size if self.log.exists() else 0
        self._process = LocalProcess(
            "the archive",
            with_parent_death_signal([sys.executable, *PROGRAM]),
            env=self._environment,
            cwd=Path.cwd(),
            log=self.log,
        )
        return self._process

    def start(self) -> None:
        """Start the archive, and wait until clients can connect. Raises LabError if it ends."""
        process = self.launch()
        deadline_s = time.monotonic() + START_LIMIT_S
        while not self.is_ready():
            if process.poll() is not None:
                raise LabError(f"the archive ended during start-up: {self.last_words()}")
            if time.monotonic() > deadline_s:
                raise LabError(f"the archive was not ready within {START_LIMIT_S:g} s")
            time.sleep(LOOK_S)

    def _age_mark_file(self) -> None:
        """Make the activity of a killed archive so old that a new archive need not wait."""
        then_ms = int(time.time() * 1_000) - AGE_MS
        with (
            contextlib.suppress(FileNotFoundError),
            (self.directory / MARK_FILE).open("r+b") as file,
        ):
            file.seek(ACTIVITY_OFFSET)
            file.write(then_ms.to_bytes(8, "little"))

    def is_ready(self) -> bool:
        """Return whether the archive has announced that it serves clients."""
        return any(map(is_ready_line, self.output().splitlines()))

    def output(self) -> str:
        """Return what the archive has printed since its last start."""
        with self.log.open("rb") as file:
            file.seek(self._log_length)
            return file.read().decode(errors="replace")

    def check(self) -> None:
        """Raise Violation if the archive or its driver has ended."""
        if not self.driver.is_alive:
            raise Violation(f"the driver exited: {self.driver.last_words()}")
        if self._process is None or self._process.poll() is not None:
            raise Violation(f"the archive exited: {self.last_words()}")

    def last_words(self) -> str:
        """Describe how the archive ended: its exit code and the last lines of its output."""
        if self._process is None:
            return "it was not started"
        return f"exit code {self._process.poll()}: {self._process.tail()}"

    def memory(self) -> process_facts.Memory:
        """Return the archive's current memory use. The archive must be running."""
        assert self._process is not None
        return process_facts.memory(self._process.pid)

    def kill(self) -> None:
        """End the archive with SIGKILL, if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def stop(self) -> int | None:
        """End the archive with SIGTERM. Returns its exit code, or None if it did not end."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(END_LIMIT_S)
        self.kill()
        return code

    def wait(self, timeout_s: float) -> int | None:
        """Wait until the archive ends by itself. Returns its exit code, or None on timeout."""
        assert self._process is not None
        code = self._process.wait(timeout_s)
        if code is not None:
            self._process = None
        return code
