"""Runs an archive and its media driver in a directory that is removed afterwards.

    ours    python -m windtunnel.driver, and a separate python -m windtunnel.driver.archive
    java    one process of Java's archive and its driver, from the jar that AERON_ALL_JAR names

Both get the same settings under equivalent names, such as `aeron.archive.dir` and
AERON_ARCHIVE_DIR. All other settings have each archive's defaults. An archive is ready when its
mark file has a version, which it writes last.
"""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from windtunnel.harness.bench.host import END_LIMIT_S, LOOK_S, START_LIMIT_S, DriverHost
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import OURS, driver_directory, plain_environment
from windtunnel.harness.capture import process_facts
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.processes.process import LocalProcess
from windtunnel.harness.orchestrate.run.archives import PROGRAM as OUR_PROGRAM
from windtunnel.harness.orchestrate.subjects import peers

SEGMENT_LENGTH = 128 << 20
VERSION_OFFSET, VERSION_LENGTH = 8, 4
"""Offset and length of the version field in a mark file. Source: archive-protocol 4.5."""

_OPENS = ("java.base/sun.nio.ch", "java.base/jdk.internal.misc", "java.base/java.util.zip")
_JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseParallelGC",
    # Java's buffer bounds checks are optional; Java performs best without them.
    "-Dagrona.disable.bounds.checks=true",
    *(word for name in _OPENS for word in ("--add-opens", f"{name}=ALL-UNNAMED")),
)
_JAVA_MAIN = "io.aeron.archive.ArchivingMediaDriver"


@dataclass(frozen=True)
class ArchiveSubject:
    """Name and title of an archive that the benchmark measures."""

    name: str
    title: str


OUR_ARCHIVE = ArchiveSubject("ours", "windtunnel archive")
JAVA_ARCHIVE = ArchiveSubject("java", "Aeron's archive in Java")
ARCHIVES = {subject.name: subject for subject in (OUR_ARCHIVE, JAVA_ARCHIVE)}


def archives(settings: BenchSettings) -> tuple[list[ArchiveSubject], dict[str, str]]:
    """Return the archives to measure and, for each selected archive that is unavailable, the reason
    by name. Raises PeerError if the environment names a jar that does not exist.
    """
    if not settings.archive_cases():
        return [], {}
    selected = [ARCHIVES[name] for name in settings.drivers if name in ARCHIVES]
    if JAVA_ARCHIVE in selected:
        peers.require_jar()
    why = peers.java_problem() if JAVA_ARCHIVE in selected else ""
    missing = {JAVA_ARCHIVE.name: why} if why else {}
    return [each for each in selected if each.name not in missing], missing


def archive_settings(settings: BenchSettings, folder: Path, control_channel: str) -> dict[str, str]:
    """Return the settings for both archives and their drivers, by Java property name."""
    # A driver may use one thread for sender and receiver. An archive has no such mode.
    is_dedicated = settings.threading_mode == "DEDICATED"
    given = {
        "aeron.threading.mode": settings.threading_mode,
        "aeron.archive.threading.mode": "DEDICATED" if is_dedicated else "SHARED",
        "aeron.archive.segment.file.length": str(SEGMENT_LENGTH),
        "aeron.archive.file.sync.level": "0",
        "aeron.archive.catalog.file.sync.level": "0",
        "aeron.archive.recording.events.enabled": "false",
        "aeron.archive.control.response.channel": "aeron:udp?endpoint=127.0.0.1:0",
        "aeron.archive.replication.channel": "aeron:udp?endpoint=127.0.0.1:0",
    }
    given |= {name.lower().replace("_", "."): text for name, text in settings.both_set.items()}
    # These settings are fixed, because other values would select another archive.
    return given | {
        "aeron.dir": str(driver_directory(settings, folder)),
        "aeron.archive.dir": str(folder / "archive"),
        "aeron.archive.control.channel": control_channel,
    }


def our_environment(
    given: Mapping[str, str], settings: BenchSettings, ambient: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Convert settings to environment variables for Windtunnel's archive."""
    named = {name.upper().replace(".", "_"): text for name, text in given.items()}
    fixed = {name: named[name] for name in ("AERON_DIR", "AERON_ARCHIVE_DIR")}
    return plain_environment(ambient) | named | settings.ours_set | fixed


def java_command(given: Mapping[str, str]) -> list[str]:
    """Return the command that starts Java's archive, with the settings as system properties."""
    properties = (f"-D{name}={text}" for name, text in given.items())
    program, jar = peers.java_program() or "java", os.path.abspath(os.environ[peers.JAR_VARIABLE])
    return [program, *_JAVA_OPTIONS, *properties, "-cp", jar, _JAVA_MAIN]


def mark_is_ready(mark_file: Path) -> bool:
    """Return whether the archive that writes this mark file is ready. The archive's directory must
    be new, because it must not contain an older mark file.
    """
    try:
        with mark_file.open("rb") as file:
            head = file.read(VERSION_OFFSET + VERSION_LENGTH)
    except FileNotFoundError:
        return False
    return any(head[VERSION_OFFSET:])


class ArchiveHost:
    """A running archive with its media driver, as a context manager."""

    def __init__(
        self, subject: ArchiveSubject, settings: BenchSettings, folder: Path, control_channel: str
    ) -> None:
        self.subject = subject
        self.control_channel = control_channel
        self._settings = settings
        self._folder = folder
        self._given = archive_settings(settings, folder, control_channel)
        self._closing = ExitStack()
        self._driver: DriverHost | None = None
        self._archive: LocalProcess | None = None

    @property
    def directory(self) -> Path:
        """The media driver's directory."""
        return driver_directory(self._settings, self._folder)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            if self.subject is OUR_ARCHIVE:
                self._driver = DriverHost(OURS, self._settings, self._folder)
                self._closing.enter_context(self._driver)
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start(self) -> None:
        if self.subject is OUR_ARCHIVE:
            command = [sys.executable, *OUR_PROGRAM]
            environment = our_environment(self._given, self._settings)
        else:
            command, environment = java_command(self._given), plain_environment()
        self._archive = LocalProcess(
            self.subject.title,
            command,
            env=environment,
            cwd=Path.cwd(),
            log=self._folder / "archive.log",
        )
        deadline_s = time.monotonic() + START_LIMIT_S
        while not mark_is_ready(self._folder / "archive" / "archive-mark.dat"):
            code, tail = self._archive.poll(), self._archive.tail()
            if code is not None:
                raise LabError(f"{self.subject.title} ended with exit code {code}: {tail}")
            if time.monotonic() > deadline_s:
                raise LabError(
                    f"{self.subject.title} was not ready within {START_LIMIT_S:g} s: {tail}"
                )
            time.sleep(LOOK_S)

    @property
    def is_alive(self) -> bool:
        """Whether the archive and, if it is a separate process, its driver are running."""
        is_running = self._archive is not None and self._archive.poll() is None
        return is_running and (self._driver is None or self._driver.is_alive)

    def processor_ns(self) -> int:
        """Return the processor time used by the archive and its driver, or 0 if they have ended."""
        assert self._archive is not None
        beside = self._driver.processor_ns() if self._driver is not None else 0
        with contextlib.suppress(OSError):
            return beside + process_facts.processor_ns(self._archive.pid)
        return 0

    def _end(self) -> None:
        # The archive ends first, because it is a client of the driver.
        if self._archive is not None:
            self._archive.terminate()
            self._archive.wait(END_LIMIT_S)
            self._archive.kill()
        self._closing.close()
        for directory in (self.directory, self._folder / "archive"):
            shutil.rmtree(directory, ignore_errors=True)
