"""The processes of a run: their command lines, their hosts, and replacements for killed processes.

    place "a", "b", ...   capture, driver, sampler, publishers, subscribers, saboteur,
                          archive, recorders, replayers, applications
    place MID             relay

Each process has a unique name `<place>/<role>`, to which a replacement adds a number. The phases
start and end processes, except those that the scenario kills.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from windtunnel.harness.artifact.run_dir import ROLE_OF_FILES
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate.lab import MID, ContainerLab, Lab, LabProcess
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import WORKLOADS, WatchedProcess
from windtunnel.harness.orchestrate.run import archives
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import image_contract, subject
from windtunnel.harness.scenario.schema.archive import Archive
from windtunnel.harness.scenario.schema.traffic import Traffic

STOP_TIMEOUT_S = 60.0
"""Time limit for ending a process, which allows for overloaded machines and User Mode Linux."""

SUCCESSOR = "#"
"""Separator between the name of a replacement process and its number."""

SUBJECT_ROLES = frozenset({"driver", "archive", *WORKLOADS})
"""Roles of the subject's processes. The judge decides whether they ended as expected."""


def process_id(watched: WatchedProcess) -> str:
    """Return the id of a process: of the stream of a workload, or of an application."""
    what = watched.name.partition("/")[2].partition(SUCCESSOR)[0]
    return what.removeprefix(f"{watched.role}-")


class RunProcesses:
    """All processes that were started in a run."""

    def __init__(self, spec: RunSpec, lab: Lab, errors: list[str]) -> None:
        self.spec = spec
        self.lab = lab
        self._errors = errors
        """Receives an error message for each process of the harness that had to be killed."""
        self.watched: list[WatchedProcess] = []
        self.timeouts: Mapping[str, str] = {}
        """Environment variables that set the timeouts of drivers and clients."""
        self.images: dict[str, str] = {}
        """The images that were built for applications, by their ids."""
        self.starters: dict[str, Callable[[str], None]] = {}
        """Functions that start a process again, by its role. The argument is the name of the
        process on its host, without the role.
        """

    def of(self, *roles: str) -> list[WatchedProcess]:
        """Return all processes of the run that have one of these roles."""
        return [each for each in self.watched if each.role in roles]

    def active(self, *roles: str) -> list[WatchedProcess]:
        """Return the processes with one of these roles that the run has not asked to end."""
        return [each for each in self.of(*roles) if not each.end_requested]

    def end(self, *roles: str) -> None:
        """End all processes with these roles. Records an error for each process of the harness that
        had to be killed.

        A process under test that had to be killed is not an error of the run. The kill is recorded
        with the exit of the process.
        """
        late = watch.end_or_kill(self.of(*roles), STOP_TIMEOUT_S)
        self._errors += [each.late_text for each in late if each.role not in SUBJECT_ROLES]

    def on_host(self, host: str, *roles: str) -> list[WatchedProcess]:
        """Return a host's processes that have one of these roles and were not asked to end."""
        return [each for each in self.active(*roles) if each.name.partition("/")[0] == host]

    def kill(self, victim: WatchedProcess) -> None:
        """Kill a process with SIGKILL, as an event of the scenario requires."""
        victim.end_requested = True
        victim.process.kill()
        # This is done after the kill, because it takes time and the scenario defines when to kill.
        if victim.role == "driver":
            self._retire_sampler(victim)

    def restart(self, victim: WatchedProcess) -> None:
        """Start a new process in place of a killed one."""
        host = victim.name.partition("/")[0]
        if victim.role == "driver":
            now_ms = time.time_ns() // 1_000_000
            driver = self.start_driver(host, now_ms)
            self.start_sampler(host, now_ms).reports_for = driver
        elif victim.role == "archive":
            archives_by_host = {each.host: each for each in self.spec.scenario.archives}
            self.start_archive(archives_by_host[host])
        elif victim.role in self.starters:
            self.starters[victim.role](process_id(victim))
        else:
            traffic_id = process_id(victim)
            streams = {each.id: each for each in self.spec.scenario.traffic}
            self.start_workload(victim.role, host, streams[traffic_id])

    def _retire_sampler(self, driver: WatchedProcess) -> None:
        """End the sampler of a driver that was killed, and rename the sampler's files.

        The sampler keeps the dead driver's files open. The new driver's sampler writes new files.
        """
        host = driver.name.partition("/")[0]
        self._errors += watch.end(self.on_host(host, "sampler"), STOP_TIMEOUT_S)
        self.spec.folder.host(host).save_generation(len(self.of("driver")))

    def spawn(
        self,
        role: str,
        place: str,
        argv: list[str],
        log: Path,
        env: dict[str, str] | None = None,
        what: str = "",
    ) -> WatchedProcess:
        return self.add(
            role, place, log, lambda name: self.lab.spawn(place, argv, env=env, log=log), what
        )

    def add(
        self, role: str, place: str, log: Path, start: Callable[[str], LabProcess], what: str = ""
    ) -> WatchedProcess:
        """Start a process with a function of its unique name, and supervise it."""
        log.parent.mkdir(parents=True, exist_ok=True)
        what = what or (log.stem if role in WORKLOADS else role)
        before = sum(each.name.split(SUCCESSOR)[0] == f"{place}/{what}" for each in self.watched)
        what += f"{SUCCESSOR}{before + 1}" if before else ""
        offset = log.stat().st_size if before and log.exists() else 0
        name = f"{place}/{what}"
        watched = WatchedProcess(name, start(name), role, log, offset=offset)
        self.watched.append(watched)
        return watched

    def start_capture(self, host: str) -> WatchedProcess:
        file = self.lab.path(self.spec.folder.capture(host))
        argv = sniffer.command(self.lab.interface(host), file)
        return self.spawn("capture", host, argv, self.spec.folder.capture_log(host))

    def start_relay(self) -> WatchedProcess:
        folder = self.spec.folder
        argv = subject.relay_command(
            self.lab.python(MID),
            case=self.lab.path(folder.case),
            interfaces=self.lab.mid_interfaces(),
            out=self.lab.path(folder.path),
        )
        return self.spawn("relay", MID, argv, folder.relay_log)

    def directory(self, host: str, application_id: str = "") -> str:
        """Return the directory of a host's driver, or of an application's own driver."""
        name = f"aeron-{application_id}" if application_id else "aeron"
        return f"{self.lab.shared_memory(host)}/{name}"

    def start_driver(self, host: str, killed_ms: int = 0) -> WatchedProcess:
        tested, placeholders = self.spec.subject(host), self._placeholders(host)
        log = self.spec.folder.host(host).driver_log
        env = {**tested.variables(*placeholders), **self.timeouts}
        env |= archives.driver_variables(self.spec.scenario.archives, host)
        env |= self.spec.scenario.drivers.get(host, {})
        if killed_ms:
            env |= subject.DELETE_DIRECTORY_ON_START
        if tested.image:
            env |= image_contract.variables(self.spec.scenario.name)
            lab, request = self.lab, image_contract.driver_request(tested.image, env, log)
            assert isinstance(lab, ContainerLab)
            return self.add("driver", host, log, lambda name: lab.start_application(name, request))
        argv = tested.driver_command(*placeholders)
        if any(each.host == host and each.user for each in self.spec.scenario.applications):
            argv = subject.group_may_use(argv)
        return self.spawn("driver", host, argv, log, env)

    def _placeholders(self, host: str) -> tuple[str, str, str]:
        """Return the values that replace the placeholders in the command lines of a host's driver
        and workloads.
        """
        folder = self.spec.subject(host).libraries
        libraries = "" if folder is None else self.lab.path(folder)
        return self.lab.python(host), self.directory(host), libraries

    def start_sampler(self, host: str, killed_ms: int = 0) -> WatchedProcess:
        files = self.spec.folder.host(host)
        argv = subject.sampler_command(
            self.lab.python(host),
            directory=self.directory(host),
            out=self.lab.path(files.path),
            after_ms=killed_ms,
            sees_driver=not self.spec.subject(host).image,
        )
        return self.spawn("sampler", host, argv, files.sampler_log)

    def start_archive(self, archive: Archive) -> WatchedProcess:
        host, files = archive.host, self.spec.folder.host(archive.host)
        argv = archives.command(
            self.lab.python(host),
            archive=self.lab.path(files.archive),
            aeron=self.directory(host),
            disk_bytes=archive.disk_bytes,
        )
        env = {**self.spec.subject(host).variables(*self._placeholders(host)), **self.timeouts}
        uses_udp = any(each.replicated for each in self.spec.scenario.traffic)
        env |= archives.variables(archive, self.lab.address(host) if uses_udp else "")
        return self.spawn("archive", host, argv, files.archive_log, env)

    def start_workload(self, role: str, host: str, stream: Traffic) -> WatchedProcess:
        files = self.spec.folder.host(host)
        file_role = ROLE_OF_FILES.get(role, role)
        log = files.saboteur_log if role == "saboteur" else getattr(files, file_role)(stream.id).log
        ends = stream.ends(role)
        tested = self.spec.subject(host)
        argv = tested.workload_command(
            self.lab.python(host),
            role,
            case=self.lab.path(self.spec.folder.case),
            traffic=stream.id,
            directory=self.directory(host),
            out=self.lab.path(files.path),
            host=host if len(ends) > 1 else "",
        )
        argv += subject.sabotage_arguments(role, self.spec.sabotage)
        env = {**tested.variables(*self._placeholders(host)), **self.timeouts}
        return self.spawn(role, host, argv, log, env)

    def start_saboteur(self) -> None:
        if subject.SABOTAGE_ROLES.get(self.spec.sabotage) == "saboteur":
            first = self.spec.scenario.traffic[0]
            self.start_workload("saboteur", first.to_host, first)
