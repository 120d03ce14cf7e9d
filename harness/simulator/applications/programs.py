"""A simulated host's programs, which can be paused, killed and replaced like processes.

    Program    name, role, host        pause -> resume        kill -> successor
      DriverProgram     the driver and the sampler of its counters
      Application       a publisher or a subscriber, and its client

A paused program is not stepped while time advances. A killed one is never stepped again and leaves
no files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run_dir import ROLE_OF_FILES, HostDir
from windtunnel.harness.simulator.applications.publisher import Publisher
from windtunnel.harness.simulator.applications.routines import MergingSubscriber, RoutineApplication
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.output.counter_samples import CounterSamples
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.host import Host, HostClient
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.workload.stop import SubjectError, error_text

KILLED = -9
"""Exit code of a process killed by SIGKILL."""
SUCCESSOR = "#"
"""Separator between a program's name and its number, used in the names of replacements."""


class Program(Protocol):
    """A driver, an archive or an application that runs on a simulated host."""

    name: str
    role: str
    host: Host
    is_killed: bool

    def pause(self) -> None:
        """Pause the program: the simulator no longer runs its steps."""

    def resume(self) -> None:
        """Resume the program: the simulator runs its steps again."""

    def kill(self) -> None:
        """End the program without any cleanup."""

    def successor(self) -> Program:
        """Start a new program in place of this one, which was killed."""

    def exit(self, log: str) -> ProcessExit:
        """Return the exit code of the program and its last error."""


def next_name(name: str) -> str:
    """Return the name of the replacement for a program."""
    first, _, number = name.partition(SUCCESSOR)
    return f"{first}{SUCCESSOR}{int(number or 1) + 1}"


class DriverProgram:
    """A simulated host's driver, with the sampler that records its counters."""

    role = "driver"

    def __init__(
        self, host: Host, files: HostDir, clock_ns: Callable[[], int], name: str = ""
    ) -> None:
        self.host = host
        self.name = name or f"{host.name}/driver"
        self.is_killed = False
        self.error = ""
        """Description of the exception that the driver raised, or empty."""
        self._files, self._clock_ns = files, clock_ns
        self.samples = CounterSamples(host, files)

    def pause(self) -> None:
        self.host.pause_driver()

    def resume(self) -> None:
        # Neither a driver that was killed while paused nor its successor is resumed.
        if not self.is_killed:
            self.host.resume_driver()

    def kill(self) -> None:
        # The files belong to the killed driver. Its successor writes new ones in their place.
        self.is_killed = True
        self.samples.close(self._clock_ns())
        _, _, number = self.name.partition(SUCCESSOR)
        self._files.save_generation(int(number or 1))
        self.host.kill_driver()

    def successor(self) -> DriverProgram:
        self.host.restart_driver()
        return DriverProgram(self.host, self._files, self._clock_ns, next_name(self.name))

    def close(self) -> None:
        """Write the sampler's files, unless the driver was killed."""
        if not self.is_killed:
            self.samples.close(self._clock_ns())

    def exit(self, log: str) -> ProcessExit:
        if self.is_killed:
            return ProcessExit(self.name, self.role, KILLED, True, log, "")
        code = int(bool(self.error))
        return ProcessExit(self.name, self.role, code, not code, log, self.error)


Work = Publisher | Subscriber | MergingSubscriber | RoutineApplication
"""What an application does."""
Make = Callable[[Callable[[], Aeron | None]], Work]
"""Creates what an application does, given a function that connects it to a running driver."""


class Application:
    """A publisher, a subscriber, or what uses an archive. It behaves like a separate process, with
    its own client.
    """

    def __init__(self, host: Host, make: Make, name: str = "") -> None:
        self.host = host
        self._make = make
        self._host_client: HostClient | None = None
        self.is_killed = self._is_paused = False
        self.error = ""
        """The error that stopped the application, or empty."""
        self.work = make(self._connect)
        self.role = self.work.role
        what = ROLE_OF_FILES.get(self.role, self.role)
        self.name = name or f"{host.name}/{what}-{self.work.traffic.id}"

    def _connect(self) -> Aeron | None:
        """Replace the client with a new one. Returns None if no driver is running."""
        if not self.host.is_running:
            return None
        if self._host_client is not None:
            self.host.drop_client(self._host_client)
        self._host_client = self.host.connect()
        return self._host_client.client

    @property
    def is_done(self) -> bool:
        """Return whether the application has published, read or recorded its whole stream."""
        return self.work.is_done

    def step(self) -> int:
        """Run the application until it would block.

        Returns the time of its next step, AT_ONCE, or NEVER if it waits for something to happen.
        Raises Unsupported if the driver reports NOT_SUPPORTED.
        """
        if self.error or self.is_killed or self._is_paused:
            return NEVER
        try:
            return self.work.step()
        except (DriverError, SubjectError) as error:
            if getattr(error, "code", None) == ErrorCode.NOT_SUPPORTED:
                raise Unsupported(str(error)) from error
            self.error = error_text(error)
            return AT_ONCE

    def pause(self) -> None:
        self._set_paused(True)

    def resume(self) -> None:
        self._set_paused(False)

    def _set_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if self._host_client is not None:
            self._host_client.is_paused = is_paused

    def kill(self) -> None:
        self.is_killed = True
        if self._host_client is not None:
            self.host.drop_client(self._host_client)

    def successor(self) -> Application:
        return Application(self.host, self._make, next_name(self.name))

    def close(self, files: HostDir) -> None:
        """Write the application's files, unless it was killed."""
        if self.is_killed:
            return
        if isinstance(self.work, Publisher):
            self.work.close(files, self.error)
        else:
            self.work.close(self.error)

    def exit(self, log: str) -> ProcessExit:
        if self.is_killed:
            return ProcessExit(self.name, self.role, KILLED, True, log, "")
        code = int(bool(self.error)) if self.is_done or self.error else None
        return ProcessExit(self.name, self.role, code, code is None, log, self.error)
