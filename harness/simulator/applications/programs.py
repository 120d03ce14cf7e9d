"""The programs of a simulated host, as whoever pauses, kills and restarts processes sees them.

    Program    name, role, host        pause -> resume        kill -> successor
      DriverProgram     the driver, with the sampler that watches it
      Application       a publisher or a subscriber, and its client

Who is paused is not stepped while time goes on; who is killed is not stepped any more and leaves
nothing. Refuses to know why, and when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.simulator.applications.publisher import Publisher
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.output.counter_samples import CounterSamples
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.host import Guest, Host
from windtunnel.harness.workload.stop import SubjectError

KILLED = -9
"""The exit code of a process that SIGKILL has ended."""
SUCCESSOR = "#"
"""Between the name of a program and its number, if another had that name before it."""


class Program(Protocol):
    """What every program can suffer."""

    name: str
    role: str
    host: Host
    is_killed: bool

    def pause(self) -> None:
        """It stands still."""

    def resume(self) -> None:
        """It goes on."""

    def kill(self) -> None:
        """It ends without a word."""

    def successor(self) -> Program:
        """Another one in place of this, which was killed."""

    def exit(self, log: str) -> ProcessExit:
        """How it ended."""


def next_name(name: str) -> str:
    """The name of the successor of a program."""
    first, _, number = name.partition(SUCCESSOR)
    return f"{first}{SUCCESSOR}{int(number or 1) + 1}"


class DriverProgram:
    """The driver of a host."""

    role = "driver"

    def __init__(
        self, host: Host, files: HostDir, clock_ns: Callable[[], int], name: str = ""
    ) -> None:
        self.host = host
        self.name = name or f"{host.name}/driver"
        self.is_killed = False
        self.error = ""
        """What it raised, if it did."""
        self._files, self._clock_ns = files, clock_ns
        self.samples = CounterSamples(host, files)

    def pause(self) -> None:
        self.host.pause_driver()

    def resume(self) -> None:
        # One that was killed meanwhile is not woken, nor is its successor.
        if not self.is_killed:
            self.host.resume_driver()

    def kill(self) -> None:
        # Its files are those of the driver that dies; the successor's take their place.
        self.is_killed = True
        self.samples.close(self._clock_ns())
        _, _, number = self.name.partition(SUCCESSOR)
        self._files.put_aside(int(number or 1))
        self.host.kill_driver()

    def successor(self) -> DriverProgram:
        self.host.restart_driver()
        return DriverProgram(self.host, self._files, self._clock_ns, next_name(self.name))

    def close(self) -> None:
        """Write down what its sampler knows."""
        if not self.is_killed:
            self.samples.close(self._clock_ns())

    def exit(self, log: str) -> ProcessExit:
        if self.is_killed:
            return ProcessExit(self.name, self.role, KILLED, True, log, "")
        code = int(bool(self.error))
        return ProcessExit(self.name, self.role, code, not code, log, self.error)


Make = Callable[[Callable[[], Aeron | None]], Publisher | Subscriber]
"""Makes what a program runs, given what connects it to a driver that is at work."""


class Application:
    """A publisher or a subscriber in a process of its own, with a client of its own."""

    def __init__(self, host: Host, make: Make, name: str = "") -> None:
        self.host = host
        self._make = make
        self._guest: Guest | None = None
        self.is_killed = self._is_paused = False
        self.error = ""
        """What went wrong; empty for a program that is well."""
        self.work = make(self._connect)
        self.role = self.work.role
        self.name = name or f"{host.name}/{self.role}-{self.work.traffic.id}"

    def _connect(self) -> Aeron | None:
        """A new client in place of the one before, if the driver is at work."""
        if not self.host.is_working:
            return None
        if self._guest is not None:
            self.host.forget(self._guest)
        self._guest = self.host.connect()
        return self._guest.client

    @property
    def is_done(self) -> bool:
        """Whether it has come to its end by itself."""
        return self.work.is_done

    def step(self) -> None:
        """Let it do what it can without waiting. Raises Unsupported when the driver says so."""
        if self.error or self.is_killed or self._is_paused:
            return
        try:
            self.work.step()
        except (DriverError, SubjectError) as error:
            if getattr(error, "code", None) == ErrorCode.NOT_SUPPORTED:
                raise Unsupported(str(error)) from error
            self.error = f"{type(error).__name__}: {error}"

    def pause(self) -> None:
        self._set_paused(True)

    def resume(self) -> None:
        self._set_paused(False)

    def _set_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if self._guest is not None:
            self._guest.is_paused = is_paused

    def kill(self) -> None:
        self.is_killed = True
        if self._guest is not None:
            self.host.forget(self._guest)

    def successor(self) -> Application:
        return Application(self.host, self._make, next_name(self.name))

    def close(self, files: HostDir) -> None:
        """Leave its files, unless it was killed before it could."""
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
