"""The lab of a simulated run: an in-memory directory, and one process for all hosts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate import cancel
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.processes import fork_server_client, process
from windtunnel.harness.orchestrate.processes.fork_server_client import ForkedProcess
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog, LocalProcess
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import LabState
from windtunnel.harness.topology.model import Topology


class SimulatedLab:
    """A lab without hosts, which only has an in-memory directory. Implements `Lab`."""

    name: str = SIM

    def __init__(self, topology: Topology, labs: Path) -> None:
        self.topology = topology
        self._labs = labs
        self.state = LabState(token=topology.token, run_id=topology.run_id, kind=self.name)
        self._processes: list[LocalProcess | ForkedProcess] = []
        self._watchdog: CleanupWatchdog | None = None

    def up(self) -> None:
        try:
            record = self.state.write(self._labs)
            self._watchdog = CleanupWatchdog(
                [sys.executable, "-m", cleanup_watchdog.__name__, str(record)],
                env=environment(),
                cwd=ROOT,
            )
        except BaseException:
            self.down()
            raise

    def address(self, host: str) -> str:
        return str(self.topology.host(host).address)

    def interface(self, host: str) -> str:
        raise LabError(f"host {host} is simulated and has no interface")

    def mid_interfaces(self) -> tuple[str, ...]:
        raise LabError("the middlebox is simulated and has no interfaces")

    def python(self, place: str) -> str:
        return sys.executable

    def shared_memory(self, host: str) -> str:
        return str(self.state.memory_directory())

    def spawn(
        self,
        place: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> LocalProcess | ForkedProcess:
        # Otherwise a process could be started that `down` does not end.
        with cancel.shielded():
            started = fork_server_client.start(
                f"{place}/{log.stem}",
                argv,
                command=process.with_parent_death_signal(argv),
                common=environment(),
                env=env or {},
                cwd=ROOT,
                log=log,
                network=None,
            )
            self._processes.append(started)
        return started

    def path(self, path: Path) -> str:
        return str(path.resolve())

    def read(self, place: str, path: str) -> bytes:
        raise LabError(f"{place} is simulated and has no file {path}")

    def down(self) -> None:
        for running in self._processes:
            running.kill()
        self._processes.clear()
        clean.remove(self.state, self._labs)
        if self._watchdog is not None:
            self._watchdog.release(cleanup_watchdog.DONE)
            self._watchdog = None
