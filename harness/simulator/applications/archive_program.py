"""The archive of a simulated host, with its files in the run folder.

    start --> duty cycles --> close        or killed: its files stay as they are

It is our archive, invoked in virtual time. Its files are real, so writing them takes no virtual
time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from windtunnel.driver.archive.control.archive_resources import client_name
from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.archive.server.id_generator import IdGenerator
from windtunnel.driver.archive.settings import archive_settings
from windtunnel.driver.base.arith import I32_MAX
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.scenario.resolved.archive_variables import archive_variables
from windtunnel.harness.scenario.schema.archive import ArchiveCase
from windtunnel.harness.simulator.applications.programs import KILLED, next_name
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE, NS_PER_MS
from windtunnel.harness.workload.stop import error_text

TURN_NS = 10 * NS_PER_MS
"""Interval between duty cycles of an archive for which nothing happens. Its timeouts are longer."""
RETRY_NS = NS_PER_MS
"""Interval between attempts to start, while the driver closes what a killed archive had."""


class ArchiveProgram:
    """An archive that behaves like a separate process, with its own client."""

    role = "archive"

    def __init__(
        self,
        host: Host,
        case: ArchiveCase,
        directory: Path,
        rng: Random,
        clock_ns: Callable[[], int],
        *,
        uses_udp: bool,
        name: str = "",
    ) -> None:
        """Create an archive that starts with its first step. `rng` draws its ids, and `uses_udp`
        says whether it replicates.
        """
        self.host = host
        self.name = name or f"{host.name}/archive"
        self.error = ""
        """The error that ended the archive, or empty."""
        self.is_killed = self._is_paused = False
        self._case, self._directory, self._rng = case, directory, rng
        self._clock_ns, self._uses_udp = clock_ns, uses_udp
        self._archive: Archive | None = None

    def step(self) -> int:
        """Run a duty cycle. Returns the time of the next one that is needed even if nothing
        happens, AT_ONCE if this one has worked, or NEVER.
        """
        if self.error or self.is_killed or self._is_paused:
            return NEVER
        try:
            if self._archive is None:
                return self._start()
            work_count = self._archive.invoke()
        except (DriverError, OSError) as error:
            self.error = error_text(error)
            return AT_ONCE
        return AT_ONCE if work_count else self._clock_ns() + TURN_NS

    def _start(self) -> int:
        if not self.host.is_running:
            return self._clock_ns() + RETRY_NS
        variables = archive_variables(self._case, self.host.address if self._uses_udp else "")
        archive_id = self._rng.randrange(I32_MAX)
        settings = archive_settings.from_texts(
            variables, dir=self._directory, aeron_dir=self.host.directory, archive_id=archive_id,
            threading_mode=archive_settings.INVOKER,
        )  # fmt: skip
        client = self.host.open_client(client_name=client_name(archive_id))
        try:
            self._archive = Archive(settings, self.host.clock, client, IdGenerator(self._rng))
        except RegistrationError as error:
            if error.code != ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE:
                raise
            return self._clock_ns() + RETRY_NS
        return AT_ONCE

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    def kill(self) -> None:
        self.is_killed = True
        if self._archive is not None:
            self._archive.abandon()

    def successor(self) -> ArchiveProgram:
        return ArchiveProgram(
            self.host, self._case, self._directory, self._rng, self._clock_ns,
            uses_udp=self._uses_udp, name=next_name(self.name),
        )  # fmt: skip

    def close(self) -> None:
        """Stop the archive in an orderly way, unless it was killed or has failed."""
        if self._archive is not None and not self.is_killed and not self.error:
            self._archive.close()

    def exit(self, log: str) -> ProcessExit:
        if self.is_killed:
            return ProcessExit(self.name, self.role, KILLED, True, log, "")
        code = int(bool(self.error))
        return ProcessExit(self.name, self.role, code, not code, log, self.error)
