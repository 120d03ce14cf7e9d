"""The phases of a run in order, including those that finish the run after any failure.

    prepare -> lab -> start -> subscribe -> applications -> traffic -> settle    any may fail
                                                        |
                          stop -> collect <-------------+            these always follow,
                                                                     then the lab goes down

    start: captures, relay, drivers and samplers together, then archives; each must become ready
    stop:  workloads, applications, archives, drivers, samplers (last sample, logs), relay, captures

A failed run keeps its evidence, with the reason in its manifest. This module does not call the
judge.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Sequence

from windtunnel.harness.artifact.host.host_facts import udp_lines
from windtunnel.harness.artifact.run.manifest import Phase
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate import facts
from windtunnel.harness.orchestrate.applications.applications import Applications
from windtunnel.harness.orchestrate.lab import Lab, LabError, Unsupported
from windtunnel.harness.orchestrate.labs import space
from windtunnel.harness.orchestrate.labs.netem import Netem
from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import WORKLOADS, RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run import archives, traffic
from windtunnel.harness.orchestrate.run.collection import (
    record_versions,
    wait_for_captures,
    write_agreement,
    write_capture_statistics,
    write_snmp,
)
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.orchestrate.run.link_events import LinkEvents
from windtunnel.harness.orchestrate.run.preparation import new_manifest, resolved_case
from windtunnel.harness.orchestrate.run.publisher_barrier import Barrier, has_publication, release
from windtunnel.harness.orchestrate.run.run_processes import STOP_TIMEOUT_S, RunProcesses
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import CANNOT_START_EXIT_CODES
from windtunnel.harness.orchestrate.teardown.state import MEMORY_ROOT
from windtunnel.harness.scenario.resolved.case import Case

READY_TIMEOUT_S = 300.0
"""Time limit for a process to be ready, including compiling kernels on a machine's first run."""

REQUIRED = ("capture", "relay", "driver", "archive", "sampler")
"""Roles of the processes that must live until the end of the traffic."""

QUIET_S = 0.2
"""Time between the end of the last workload and the end of the drivers."""

Emit = Callable[..., None]


class Run:
    """A run and its phases. The caller creates the lab and removes it."""

    def __init__(self, spec: RunSpec, lab: Lab, emit: Emit) -> None:
        self.spec = spec
        self.lab = lab
        self._emit = emit
        self._case: Case | None = None
        self._netem: Netem | None = None
        self._events: HostEvents | None = None
        self._applications: Applications | None = None
        self._subscribers: dict[str, list[WatchedProcess]] = {}
        """The subscribers of each stream, by the stream's name in the scenario."""
        self._snmp_before: dict[str, dict[str, int]] = {}
        self._steal_ticks = facts.steal_ticks()
        self.manifest = new_manifest(spec)
        self.processes = RunProcesses(spec, lab, self.manifest.errors)

    # ---- execution ----

    def execute(self) -> None:
        """Execute the phases `prepare` to `settle`. Raises the exception that stopped the run."""
        self._phase("prepare", self._prepare)
        if any(each.build for each in self.spec.scenario.applications):
            self._phase("build", self._build_images)
        self._phase("lab", self.lab.up)
        self._phase("start", self._start)
        self._phase("subscribe", self._subscribe)
        if self.spec.scenario.applications:
            self._phase("applications", self._start_applications)
        self._phase("traffic", self._traffic)
        self._phase("settle", lambda: time.sleep(QUIET_S))

    def _phase(self, name: str, work: Callable[[], None]) -> None:
        self._emit(kind="phase", phase=name)
        started_ns = time.time_ns()
        try:
            work()
        finally:
            self.manifest.phases.append(Phase(name, started_ns, time.time_ns()))

    def _prepare(self) -> None:
        self._write_case()
        need = space.estimate(self.spec.scenario)
        space.require(self.spec.folder.path, need.disk_bytes, "the run folder")
        if self.spec.fidelity != "compose":
            space.require(MEMORY_ROOT, need.memory_bytes, "the drivers' files")

    def _build_images(self) -> None:
        assert self._applications is not None
        self._applications.build_images(self.lab)

    def _write_case(self) -> None:
        self._write_scenario()
        self._case = self._completed(resolved_case(self.spec, self.lab))
        self._case.write(self.spec.folder.case)
        self.processes.timeouts = self._case.timeouts.variables
        self._applications = self._make_applications(self._case)

    def _write_scenario(self) -> None:
        if self.spec.scenario_text:
            self.spec.folder.scenario.write_text(self.spec.scenario_text, encoding="utf-8")
        else:
            shutil.copyfile(self.spec.scenario_file, self.spec.folder.scenario)

    def _completed(self, case: Case) -> Case:
        """Return the case with what is not known from the scenario."""
        return case

    def _make_applications(self, case: Case) -> Applications:
        return Applications(case.applications, self.processes)

    def _start(self) -> None:
        try:
            self._start_all()
        except RunFailed:
            for driver in self.processes.of("driver"):
                if driver.process.poll() in CANNOT_START_EXIT_CODES:
                    raise Unsupported(driver.describe_exit()) from None
            raise

    def _start_all(self) -> None:
        captures = [self.processes.start_capture(host) for host in self._hosts]
        relay = self.processes.start_relay()
        drivers = [self.processes.start_driver(host) for host in self._hosts]
        samplers = [self.processes.start_sampler(host) for host in self._hosts]
        for host in self._hosts:
            text = self.lab.read(host, "/proc/net/snmp").decode()
            self._snmp_before[host] = udp_lines(text)
        self._await("captures", captures, lambda line: sniffer.READY in line)
        for each in captures:
            each.process.send_signal(sniffer.REPORT_SIGNAL)
        self._await("the relay", [relay], _is_ready_line)
        self._start_netem()
        for driver, sampler in zip(drivers, samplers, strict=True):
            sampler.reports_for = driver
        self._await("drivers", samplers, _is_ready_line)
        # Nothing has been sent yet, so missing packets arrived before the filter was installed.
        self._await("captures", captures, sniffer.is_report)
        archives_started = [
            self.processes.start_archive(each) for each in self.spec.scenario.archives
        ]
        self._await("archives", archives_started, archives.is_ready_line)

    def _start_netem(self) -> None:
        """Configure netem on the middlebox's interfaces if the scenario uses it."""
        assert self._case is not None
        if any(self._case.backend_of(each.link) == "netem" for each in self._case.impairments):
            self._netem = Netem(self.lab, self._case, self.spec.folder.netem_log)
            self._netem.apply()

    def _await(
        self, what: str, waiting: Sequence[WatchedProcess], ready: Callable[[str], bool]
    ) -> None:
        """Wait until all given processes are ready. Raises RunFailed if a process of the run ends
        first.
        """
        self._emit(kind="phase", phase=f"waiting for {what}")
        watch.wait_until_ready(
            waiting, ready, required=self.processes.watched, timeout_s=READY_TIMEOUT_S
        )

    def _subscribe(self) -> None:
        readers = []
        for each in self.spec.scenario.traffic:
            subscribers, recorders = (
                [self.processes.start_workload(role, host, each) for host in each.ends(role)]
                for role in ("subscriber", "recorder")
            )
            self._subscribers[each.id] = subscribers
            readers += [*subscribers, *recorders]
        self._await("subscribers", readers, _is_ready_line)

    def _start_applications(self) -> None:
        assert self._applications is not None
        self._applications.start_all(lambda: self.processes.active(*REQUIRED))

    def _traffic(self) -> None:
        barriers = []
        for each in self.spec.scenario.traffic:
            started = [
                self.processes.start_workload(each.sender, host, each) for host in each.from_hosts
            ]
            if len(started) > 1 or each.readers_to_start:
                readers = self._subscribers[each.id]
                barriers.append(Barrier(each.id, started, readers, each.readers_to_start))
            for host in each.ends("replicator"):
                self.processes.start_workload("replicator", host, each)
        if barriers:
            publishers = [one for each in barriers for one in each.publishers]
            self._await("publishers", publishers, has_publication)
            wall_s = self.spec.scenario.budget.wall_ns / 1e9
            release(barriers, required=self.processes.watched, wall_s=wall_s)
        self.processes.start_saboteur()
        assert self._case is not None
        assert self._applications is not None
        events = HostEvents(self._case.events, self.processes, self._link_events(self._case))
        self._events = events
        traffic.wait_for_workloads(
            workloads=lambda: self.processes.active(*WORKLOADS),
            required=lambda: self.processes.active(*REQUIRED),
            events=events,
            applications=self._applications,
            total_bytes=sum(
                each.content.total_bytes * len(each.to_hosts) for each in self.spec.scenario.traffic
            ),
            wall_s=self.spec.scenario.budget.wall_ns / 1e9,
            start_s=READY_TIMEOUT_S,
            emit=self._emit,
        )
        events.require_all_triggered()
        # A failed sabotage must not look like a sabotage that the judge has missed.
        watch.require_success(self.processes.of("saboteur"), STOP_TIMEOUT_S)

    def _link_events(self, case: Case) -> LinkEvents | None:
        if not case.changes_links:
            return None
        return LinkEvents(case, LinkRequester(self.spec.folder, self.processes.of("relay")[0]))

    # ---- finish ----

    def record_failure(self, failure: RunFailed) -> None:
        """Record in the manifest why the run cannot continue, as an error if the harness failed."""
        if failure.harness_fault:
            self.manifest.errors.append(str(failure))
        else:
            self.manifest.stopped = str(failure)

    def finish(self, *, is_fast: bool) -> None:
        """Stop all processes and collect the evidence, after a complete run or after a failure.

        `is_fast` skips the wait for complete captures, for a run that will not be judged.
        """
        self._phase("stop", lambda: self._stop(is_fast))
        if not is_fast:
            self._record_exit_errors()
        self._phase("collect", self._collect)

    def take_down(self) -> None:
        """Take down the lab as the last phase of the run."""
        self._phase("down", self.lab.down)

    def _stop(self, is_fast: bool) -> None:
        if self._events is not None:
            self._events.close(self.spec.folder.host_events)
        workloads = (*WORKLOADS, "saboteur")
        self.processes.end(*workloads)
        if self._applications is not None:
            self._applications.end()
        # The samplers end after the drivers, because they must read the final counters and logs.
        for roles in (("archive",), ("driver",), ("sampler",), ("relay",)):
            self.processes.end(*roles)
        if not is_fast and self._netem is not None:
            self._close_netem(self._netem)
        if not is_fast:
            wait_for_captures(self.processes.of("capture"))
        self.processes.end("capture")

    def _close_netem(self, netem: Netem) -> None:
        try:
            netem.close()
        except LabError as error:
            self.manifest.errors.append(str(error))
        netem.account.write(self.spec.folder.netem)

    def _record_exit_errors(self) -> None:
        """Record an error for each process of the harness that did not end successfully."""
        for each in self.processes.watched:
            is_good = each.process.poll() in (None, 0, -signal.SIGTERM, -signal.SIGKILL)
            if each.is_harness and each.end_requested and not is_good:
                self.manifest.errors.append(each.describe_exit())

    def _collect(self) -> None:
        self.manifest.processes = [
            each.facts(self.spec.folder.path) for each in self.processes.watched
        ]
        self.manifest.host_facts["steal_ticks"] = facts.steal_ticks() - self._steal_ticks
        record_versions(self.manifest, self.spec.folder)
        if self.spec.replayed is not None and self._case is not None:
            write_agreement(self.spec.replayed.run_id, self._case, self.spec.folder)
        write_capture_statistics(self.spec.folder, self._hosts)
        snmp = write_snmp(self.spec.folder, self.lab, self._snmp_before)
        self.manifest.errors.extend(snmp)

    @property
    def _hosts(self) -> tuple[str, ...]:
        return self.spec.scenario.network.hosts


def _is_ready_line(line: str) -> bool:
    return line.split(" ", 1)[0] == subject.READY
