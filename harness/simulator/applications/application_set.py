"""All drivers, publishers and subscribers of a simulated run, including those that were killed and
their replacements.

drivers       one per host, each with its sampler
applications  subscribers, then publishers: one for each end of each stream
exercises     one program for each, with clients on the first two hosts
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.cut import may_disconnect
from windtunnel.harness.simulator.applications.programs import Application, DriverProgram, Program
from windtunnel.harness.simulator.applications.publisher import Publisher
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.exercises.exercise import Exercise
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.sabotage import Sabotage
from windtunnel.harness.simulator.world.world import SimulatedWorld


class ApplicationSet:
    """The drivers, publishers and subscribers of one simulated run, including those that were
    killed.
    """

    def __init__(
        self,
        world: SimulatedWorld,
        folder: RunDir,
        clock_ns: Callable[[], int],
        sabotage: Sabotage,
    ) -> None:
        self._world, self._folder, self._clock_ns = world, folder, clock_ns
        self._case: Case = world.case
        self._sabotage = sabotage
        self._payload = np.zeros(0, dtype=np.uint8)
        self.drivers = [
            DriverProgram(each, folder.host(each.name), clock_ns) for each in world.hosts
        ]
        self.applications: list[Application] = []
        near, far = world.hosts[:2]
        self.exercises = [Exercise(name, near, far, clock_ns) for name in self._case.exercises]
        self.stepping: Application | Exercise | None = None
        """The application or exercise that is taking a step, if any."""

    def add_subscribers(self) -> None:
        """Add one subscriber for each stream and receiving host."""
        for traffic in self._case.traffic:
            for name in traffic.subscribers:
                end = traffic.between(traffic.from_host, name)
                make = partial(self._subscriber, end)
                self.applications.append(Application(self._world.host(name), make))

    def add_publishers(self, payload: NDArray[np.uint8]) -> None:
        """Add one publisher for each stream and sending host.

        A stream's publishers start together.
        """
        self._payload = payload
        for traffic in self._case.traffic:
            peers: list[Publisher] = []
            for name in traffic.publishers:
                end = traffic.between(name, traffic.to_host)
                make = partial(self._publisher, end)
                application = Application(self._world.host(name), make)
                self.applications.append(application)
                assert isinstance(application.work, Publisher)
                peers.append(application.work)
            for each in peers:
                each.peers = peers

    def _subscriber(self, traffic: TrafficCase, connect: Callable[[], Aeron | None]) -> Subscriber:
        return Subscriber(
            traffic,
            connect,
            self._folder.host(traffic.to_host),
            self._clock_ns,
            sessions=self._case.sessions_of(traffic),
            flips_byte=self._sabotage.flips_byte,
        )

    def _publisher(self, traffic: TrafficCase, connect: Callable[[], Aeron | None]) -> Publisher:
        return Publisher(
            traffic,
            self._case.seed,
            self._payload,
            connect,
            self._clock_ns,
            skips=self._sabotage.skips_message,
            waits_for_readers=traffic.rejoins or may_disconnect(self._case, traffic),
            joined=lambda: sum(
                each.has_joined for each in self.subscribers if each.traffic.id == traffic.id
            ),
        )

    @property
    def living(self) -> list[Application]:
        """Return the publishers and subscribers that have not been killed."""
        return [each for each in self.applications if not each.is_killed]

    @property
    def running(self) -> list[Application | Exercise]:
        """Return the applications that have not been killed, and the exercises."""
        return [*self.living, *self.exercises]

    @property
    def subscribers(self) -> list[Subscriber]:
        """Return the subscribers that have not been killed."""
        return [each.work for each in self.living if isinstance(each.work, Subscriber)]

    @property
    def have_subscribed(self) -> bool:
        """Return whether the drivers have acknowledged the subscriptions of all subscribers, or an
        application has failed.
        """
        if any(each.error for each in self.living):
            return True
        return all(each.is_subscribed for each in self.subscribers)

    def count_bytes(self, role: str) -> int:
        """Return the number of bytes in complete messages that the live programs with a role have
        published or received.
        """
        return sum(each.work.count_bytes for each in self.living if each.role == role)

    def step(self) -> int:
        """Run one step of every live publisher and subscriber, and take each counter sample that is
        due.

        Returns the time of the next step that is needed even if nothing happens, or AT_ONCE.
        """
        next_ns = NEVER
        for each in self.running:
            self.stepping = each
            next_ns = min(next_ns, each.step())
        self.stepping = None
        now_ns = self._clock_ns()
        for driver in self.drivers:
            if not driver.is_killed:
                next_ns = min(next_ns, driver.samples.look(now_ns))
        return next_ns

    def on_host(self, host: str, roles: Sequence[str]) -> list[Program]:
        """Return the programs with these roles on a host that have not been killed."""
        programs: list[Program] = [*self.drivers, *self.applications]
        return [
            each
            for each in programs
            if each.host.name == host and each.role in roles and not each.is_killed
        ]

    def replace(self, killed: Program) -> None:
        """Start a new program in place of a killed one."""
        if isinstance(killed, DriverProgram):
            self.drivers.append(killed.successor())
        elif isinstance(killed, Application):
            self.applications.append(killed.successor())

    def close_applications(self) -> None:
        """Write the files of all applications."""
        for each in self.applications:
            each.close(self._folder.host(each.host.name))

    def close_samplers(self) -> None:
        """Write the counter samples of all drivers, including those that have ended."""
        for each in self.drivers:
            each.close()

    def exits(self, driver_error: str) -> list[ProcessExit]:
        """Return the exit code and the last error of each program.

        `driver_error` describes a driver's exception, or is empty.
        """
        log = self._folder.simulator_log.name
        if driver_error:
            for driver in self.drivers:
                driver.error = driver_error
        programs: list[Program] = [*self.drivers, *self.applications]
        exercises = [each.exit(log) for each in self.exercises]
        return [*(each.exit(log) for each in programs), *exercises]
