"""The processes of one run: who was started where, with which words, and who took whose place.

    place "a", "b", ...   capture, driver, sampler, publishers, subscribers, saboteur,
                          archive, recorders, replayers
    place MID             relay

Each has a name that is its own, `<place>/<what>`; a successor adds its number. Refuses to know when
in a run somebody is started or ended, but for those that its scenario orders killed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate.lab import MID, Lab
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import Watched
from windtunnel.harness.orchestrate.run import archives
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.scenario.schema.archive import Archive
from windtunnel.harness.scenario.schema.traffic import Traffic

STOP_TIMEOUT_S = 60.0
"""For a machine that stands still, and for a kernel inside a process, slow at ending programs."""

SUCCESSOR = "#"
"""Between the name of a process and its number, if another had that name before it."""

WORKLOADS = ("publisher", "subscriber", "recorder", "replayer", "replicator")
"""Roles of which a host may have several, each called by its stream."""

TESTED = frozenset({"driver", "archive", *WORKLOADS})
"""Roles of the subject: whether they end when they are asked to is for the judge to say."""

IN_THE_FILES_OF = {"replayer": "publisher", "replicator": "recorder"}
"""Who leaves what another role leaves, and where that does."""


class RunProcesses:
    """All processes of a run that were ever started."""

    def __init__(self, order: RunSpec, lab: Lab, errors: list[str]) -> None:
        self.order = order
        self.lab = lab
        self._errors = errors
        """Where it is noted what could not be ended in good order."""
        self.watched: list[Watched] = []
        self.timeouts: Mapping[str, str] = {}
        """Variables of drivers and clients."""

    def of(self, *roles: str) -> list[Watched]:
        return [each for each in self.watched if each.role in roles]

    def living(self, *roles: str) -> list[Watched]:
        """Those that nobody has told to end."""
        return [each for each in self.of(*roles) if not each.asked]

    def end(self, *roles: str) -> None:
        """End all that have one of these roles, and note who of our own did not.

        That a process under test did not is no error of the run: it is noted with its exit.
        """
        late = watch.end_or_kill(self.of(*roles), STOP_TIMEOUT_S)
        self._errors += [each.lateness for each in late if each.role not in TESTED]

    def on_host(self, host: str, *roles: str) -> list[Watched]:
        """Those of a host that nobody has told to end."""
        return [each for each in self.living(*roles) if each.name.partition("/")[0] == host]

    def kill(self, victim: Watched) -> None:
        """End a process without warning, because the scenario says so."""
        victim.asked = True
        victim.process.kill()
        # Behind it, since it takes its time, and the scenario says when to kill.
        if victim.role == "driver":
            self._retire_sampler(victim)

    def restart(self, victim: Watched) -> None:
        """Start the successor of a process that was killed."""
        host, _, what = victim.name.partition("/")
        if victim.role == "driver":
            now_ms = time.time_ns() // 1_000_000
            driver = self.start_driver(host, now_ms)
            self.start_sampler(host, now_ms).speaks_for = driver
        elif victim.role == "archive":
            kept = {each.host: each for each in self.order.scenario.archives}
            self.start_archive(kept[host])
        else:
            traffic_id = what.partition(SUCCESSOR)[0].removeprefix(f"{victim.role}-")
            streams = {each.id: each for each in self.order.scenario.traffic}
            self.start_workload(victim.role, host, streams[traffic_id])

    def _retire_sampler(self, driver: Watched) -> None:
        """Have a dead driver's sampler write down what it knows, and put that aside.

        It holds the driver's files as long as it lives; those of the successor take their place.
        """
        host = driver.name.partition("/")[0]
        self._errors += watch.end(self.on_host(host, "sampler"), STOP_TIMEOUT_S)
        self.order.folder.host(host).put_aside(len(self.of("driver")))

    def spawn(
        self,
        role: str,
        place: str,
        argv: list[str],
        log: Path,
        env: dict[str, str] | None = None,
    ) -> Watched:
        log.parent.mkdir(parents=True, exist_ok=True)
        what = log.stem if role in WORKLOADS else role
        before = sum(each.name.split(SUCCESSOR)[0] == f"{place}/{what}" for each in self.watched)
        what += f"{SUCCESSOR}{before + 1}" if before else ""
        offset = log.stat().st_size if before and log.exists() else 0
        process = self.lab.spawn(place, argv, env=env, log=log)
        watched = Watched(f"{place}/{what}", process, role, log, offset=offset)
        self.watched.append(watched)
        return watched

    def start_capture(self, host: str) -> Watched:
        file = self.lab.path(self.order.folder.capture(host))
        argv = sniffer.command(self.lab.interface(host), file)
        return self.spawn("capture", host, argv, self.order.folder.capture_log(host))

    def start_relay(self) -> Watched:
        folder = self.order.folder
        argv = subject.relay_command(
            self.lab.python(MID),
            case=self.lab.path(folder.case),
            interfaces=self.lab.mid_interfaces(),
            out=self.lab.path(folder.path),
        )
        return self.spawn("relay", MID, argv, folder.relay_log)

    def _directory(self, host: str) -> str:
        return f"{self.lab.shared_memory(host)}/aeron"

    def start_driver(self, host: str, killed_ms: int = 0) -> Watched:
        tested, where = self.order.subject(host), self._where(host)
        log = self.order.folder.host(host).driver_log
        env = {**tested.variables(*where), **self.timeouts}
        env |= archives.driver_variables(self.order.scenario.archives, host)
        if killed_ms:
            env |= subject.TAKE_DIRECTORY
        return self.spawn("driver", host, tested.driver_command(*where), log, env)

    def _where(self, host: str) -> tuple[str, str, str]:
        """What a subject's words leave open: interpreter, driver's directory, libraries."""
        brought = self.order.subject(host).libraries
        libraries = "" if brought is None else self.lab.path(brought)
        return self.lab.python(host), self._directory(host), libraries

    def start_sampler(self, host: str, killed_ms: int = 0) -> Watched:
        files = self.order.folder.host(host)
        argv = subject.sampler_command(
            self.lab.python(host),
            directory=self._directory(host),
            out=self.lab.path(files.path),
            after_ms=killed_ms,
        )
        return self.spawn("sampler", host, argv, files.sampler_log)

    def start_archive(self, archive: Archive) -> Watched:
        host, files = archive.host, self.order.folder.host(archive.host)
        argv = archives.command(
            self.lab.python(host),
            archive=self.lab.path(files.archive),
            aeron=self._directory(host),
            disk_bytes=archive.disk_bytes,
        )
        env = {**self.order.subject(host).variables(*self._where(host)), **self.timeouts}
        speaks = any(each.replicated for each in self.order.scenario.traffic)
        env |= archives.variables(archive, self.lab.address(host) if speaks else "")
        return self.spawn("archive", host, argv, files.archive_log, env)

    def start_workload(self, role: str, host: str, stream: Traffic) -> Watched:
        files = self.order.folder.host(host)
        kept = IN_THE_FILES_OF.get(role, role)
        log = files.saboteur_log if role == "saboteur" else getattr(files, kept)(stream.id).log
        ends = stream.ends(role)
        tested = self.order.subject(host)
        argv = tested.workload_command(
            self.lab.python(host),
            role,
            case=self.lab.path(self.order.folder.case),
            traffic=stream.id,
            directory=self._directory(host),
            out=self.lab.path(files.path),
            host=host if len(ends) > 1 else "",
        )
        argv += subject.sabotage_arguments(role, self.order.sabotage)
        env = {**tested.variables(*self._where(host)), **self.timeouts}
        return self.spawn(role, host, argv, log, env)

    def start_saboteur(self) -> None:
        if subject.SABOTAGE_ROLES.get(self.order.sabotage) == "saboteur":
            first = self.order.scenario.traffic[0]
            self.start_workload("saboteur", first.to_host, first)
