"""All programs of a simulated run, including those that were killed and their replacements.

drivers       one per host, each with its sampler
archives      at most one per host
applications  subscribers and recorders, then publishers, replayers and replicators: one for each
              end of each stream
exercises     one program for each, with clients on the first two hosts
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import numpy as np
from numpy.typing import NDArray

from windtunnel.driver.client.aeron import Aeron
from windtunnel.harness.artifact.run.manifest import ProcessExit
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.cut import may_disconnect
from windtunnel.harness.simulator.applications.archive_program import ArchiveProgram
from windtunnel.harness.simulator.applications.programs import Application, DriverProgram, Program
from windtunnel.harness.simulator.applications.publisher import Publisher
from windtunnel.harness.simulator.applications.routines import MergingSubscriber, RoutineApplication
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.blame import in_one_line, is_programs
from windtunnel.harness.simulator.exercises.exercise import Exercise
from windtunnel.harness.simulator.network.in_flight import NEVER
from windtunnel.harness.simulator.sabotage import Sabotage
from windtunnel.harness.simulator.support import Unsupported
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.virtual_time import AT_ONCE
from windtunnel.harness.simulator.world.world import SimulatedWorld
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.routine import Surroundings


class ApplicationSet:
    """The programs of one simulated run, including those that were killed."""

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
        uses_udp = any(each.replicated for each in self._case.traffic)
        self.archives = [
            ArchiveProgram(
                world.host(each.host), each, folder.host(each.host).archive,
                Random(f"archive {self._case.seed} {each.host}"), clock_ns, uses_udp=uses_udp,
            )
            for each in self._case.archives
        ]  # fmt: skip
        self.applications: list[Application] = []
        near, far = world.hosts[:2]
        self.exercises = [Exercise(name, near, far, clock_ns) for name in self._case.exercises]
        self.stepping: ArchiveProgram | Application | Exercise | None = None
        """The archive, application or exercise that is taking a step, if any."""

    def add_subscribers(self) -> None:
        """Add one subscriber for each stream and receiving host, and one recorder for each stream
        that is recorded.
        """
        for traffic in self._case.traffic:
            for name in traffic.subscribers:
                end = traffic.between(traffic.from_host, name)
                make = partial(self._merging if end.merges else self._subscriber, end)
                self.applications.append(Application(self._world.host(name), make))
            self._add_routines("recorder", traffic)

    def add_publishers(self, payload: NDArray[np.uint8]) -> None:
        """Add one publisher for each stream and sending host, or a replayer if the stream is a
        replay, and one replicator for each stream that is replicated.

        A stream's publishers start together.
        """
        self._payload = payload
        for traffic in self._case.traffic:
            self._add_routines("replayer", traffic)
            self._add_routines("replicator", traffic)
            peers: list[Publisher] = []
            for name in traffic.ends("publisher"):
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

    def _add_routines(self, role: str, traffic: TrafficCase) -> None:
        """Add the programs of a stream that have this role and use an archive."""
        for name in traffic.ends(role):
            host = self._world.host(name)
            make = partial(self._routine, self._options(role, traffic.at(name), host), host)
            self.applications.append(Application(host, make))

    def _routine(
        self, options: Options, host: Host, connect: Callable[[], Aeron | None]
    ) -> RoutineApplication:
        return RoutineApplication(options, self._surroundings(host, connect))

    def _merging(
        self, traffic: TrafficCase, connect: Callable[[], Aeron | None]
    ) -> MergingSubscriber:
        host = self._world.host(traffic.to_host)
        return MergingSubscriber(
            self._options("subscriber", traffic, host),
            self._surroundings(host, connect),
            flips_byte=self._sabotage.flips_byte,
        )

    def _surroundings(self, host: Host, connect: Callable[[], Aeron | None]) -> Surroundings:
        return Surroundings(connect, host.clock, self._clock_ns, on_ready=lambda: None)

    def _options(self, role: str, traffic: TrafficCase, host: Host) -> Options:
        """Return the options that the process of a workload would have."""
        files = self._folder.host(host.name)
        return Options(role, self._case, traffic, host.directory, files, sabotage="")

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
        """Return the applications that have not been killed."""
        return [each for each in self.applications if not each.is_killed]

    @property
    def running(self) -> list[Application | Exercise]:
        """Return the applications that have not been killed, and the exercises."""
        return [*self.living, *self.exercises]

    @property
    def living_archives(self) -> list[ArchiveProgram]:
        """Return the archives that have not been killed."""
        return [each for each in self.archives if not each.is_killed]

    @property
    def have_failed(self) -> bool:
        """Return whether an archive or an application has failed."""
        archives = any(each.error for each in self.living_archives)
        return archives or any(each.error for each in self.running)

    @property
    def unfinished(self) -> list[str]:
        """Return the names of the applications and exercises that have not ended."""
        return [each.name for each in self.running if not each.is_done]

    @property
    def errors(self) -> list[str]:
        """Return the errors of all archives, applications and exercises, or empty texts."""
        errors = [each.error for each in self.archives]
        errors += [each.error for each in self.applications]
        return errors + [each.error for each in self.exercises]

    @property
    def subscribers(self) -> list[Subscriber]:
        """Return the subscribers that have not been killed, except those that merge."""
        return [each.work for each in self.living if isinstance(each.work, Subscriber)]

    @property
    def have_subscribed(self) -> bool:
        """Return whether the drivers have acknowledged the subscriptions of all subscribers and
        the archives record, or a program has failed.
        """
        if self.have_failed:
            return True
        recorders = [each.work for each in self.living if each.role == "recorder"]
        return all(each.is_subscribed for each in self.subscribers) and all(
            each.is_ready for each in recorders if isinstance(each, RoutineApplication)
        )

    def count_bytes(self, role: str) -> int:
        """Return the number of bytes in complete messages that the live programs with a role have
        published or received.
        """
        return sum(each.work.count_bytes for each in self.living if each.role == role)

    def step(self) -> int:
        """Run one step of every live archive and application, and take each counter sample that is
        due.

        Returns the time of the next step that is needed even if nothing happens, or AT_ONCE.
        """
        next_ns = NEVER
        for each in (*self.living_archives, *self.running):
            self.stepping = each
            try:
                next_ns = min(next_ns, each.step())
            except Exception as error:
                _note_failure(each, error)
                next_ns = AT_ONCE
        self.stepping = None
        now_ns = self._clock_ns()
        for driver in self.drivers:
            if not driver.is_killed:
                next_ns = min(next_ns, driver.samples.look(now_ns))
        return next_ns

    def on_host(self, host: str, roles: Sequence[str]) -> list[Program]:
        """Return the programs with these roles on a host that have not been killed."""
        programs: list[Program] = [*self.drivers, *self.archives, *self.applications]
        return [
            each
            for each in programs
            if each.host.name == host and each.role in roles and not each.is_killed
        ]

    def replace(self, killed: Program) -> None:
        """Start a new program in place of a killed one."""
        if isinstance(killed, DriverProgram):
            self.drivers.append(killed.successor())
        elif isinstance(killed, ArchiveProgram):
            self.archives.append(killed.successor())
        elif isinstance(killed, Application):
            self.applications.append(killed.successor())

    def close_applications(self) -> None:
        """Write the files of all applications, then stop the archives."""
        for each in self.applications:
            each.close(self._folder.host(each.host.name))
        for archive in self.archives:
            try:
                archive.close()
            except Exception as error:
                _note_failure(archive, error)

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
        programs: list[Program] = [*self.drivers, *self.archives, *self.applications]
        exercises = [each.exit(log) for each in self.exercises]
        return [*(each.exit(log) for each in programs), *exercises]


def _note_failure(program: ArchiveProgram | Application | Exercise, error: Exception) -> None:
    """Note an exception in the client or the archive of a program as its failure. Raises any other
    exception again.
    """
    if isinstance(error, Unsupported) or not is_programs(error):
        raise error
    print("".join(traceback.format_exception(error)), flush=True)
    program.error = f"raised {in_one_line(error)}"
