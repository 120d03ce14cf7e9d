"""The phases of one run, in their order, and the way back from any of them.

    prepare -> lab -> start -> subscribe -> traffic -> settle        any of these may fail
                                                        |
                          stop -> collect <-------------+            these always follow
                                                                     (the lab goes down after)

    start: captures, relay, drivers and samplers at once, then wait until each is ready; archives
    stop:  workloads, archives, drivers, samplers (last sample, logs), relay, captures

A run that fails keeps all evidence it has and says why in its manifest. Refuses to judge.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence

from windtunnel.harness.artifact.host.host_facts import SnmpFacts, udp_lines
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.run.agreement import agreement
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, SubjectFacts
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate import facts
from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.labs import space
from windtunnel.harness.orchestrate.labs.netem import Netem
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.orchestrate.run import archives, traffic
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.orchestrate.run.publisher_barrier import has_publication, let_begin
from windtunnel.harness.orchestrate.run.run_processes import STOP_TIMEOUT_S, WORKLOADS, RunProcesses
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import CANNOT_START_EXIT_CODES
from windtunnel.harness.orchestrate.teardown.state import MEMORY_ROOT
from windtunnel.harness.scenario.resolved.case import Case, resolve
from windtunnel.harness.scenario.resolved.case import Payload as CasePayload

READY_TIMEOUT_S = 300.0
"""Generous: on a machine's first run every kernel is compiled before a process is ready."""

QUIET_S = 0.2
"""How long the link is left alone after the last workload has ended."""

Tell = Callable[..., None]


class Run:
    """One run on its way through the phases; the lab is made and destroyed by the caller."""

    def __init__(self, order: RunSpec, lab: Lab, tell: Tell) -> None:
        self.order = order
        self.lab = lab
        self._tell = tell
        self._case: Case | None = None
        self._netem: Netem | None = None
        self._events: HostEvents | None = None
        self._snmp_before: dict[str, dict[str, int]] = {}
        self._steal_ticks = facts.steal_ticks()
        self.manifest = Manifest(
            run_id=order.run_id,
            scenario=order.scenario.name,
            seed=order.seed,
            fidelity=order.fidelity,
            command=list(order.command),
            subjects={
                host: SubjectFacts(order.side(host), order.subject(host).name)
                for host in self._hosts
            },
            versions=facts.versions(),
            host_facts=facts.host_facts(),
            sabotage=order.sabotage,
            mutant=order.tested.mutant,
            replays="" if order.replayed is None else order.replayed.run_id,
        )
        self.crew = RunProcesses(order, lab, self.manifest.errors)

    # ---- the way forward ----

    def forward(self) -> None:
        """Walk the phases up to the settled end of the traffic; raises what stopped it."""
        self._phase("prepare", self._prepare)
        self._phase("lab", self.lab.up)
        self._phase("start", self._start)
        self._phase("subscribe", self._subscribe)
        self._phase("traffic", self._traffic)
        self._phase("settle", lambda: time.sleep(QUIET_S))

    def _phase(self, name: str, work: Callable[[], None]) -> None:
        self._tell(kind="phase", phase=name)
        started_ns = time.time_ns()
        try:
            work()
        finally:
            self.manifest.phases.append(Phase(name, started_ns, time.time_ns()))

    def _prepare(self) -> None:
        self._write_case()
        need = space.need(self.order.scenario)
        space.require(self.order.folder.path, need.disk_bytes, "the run folder")
        if self.order.fidelity != "compose":
            space.require(MEMORY_ROOT, need.memory_bytes, "the drivers' files")

    def _write_case(self) -> None:
        order, folder = self.order, self.order.folder
        shutil.copyfile(order.scenario_file, folder.scenario)
        folder.repro.write_text(shlex.join(order.command) + "\n")
        folder.payload.unlink(missing_ok=True)
        try:
            folder.payload.hardlink_to(order.payload.path)
        except OSError:
            shutil.copyfile(order.payload.path, folder.payload)
        payload = CasePayload(
            path=self.lab.path(folder.payload),
            sha256=order.payload.sha256,
            length_bytes=order.payload.length,
        )
        addresses = {host: self.lab.address(host) for host in self._hosts}
        self._case = resolve(
            order.scenario,
            seed=order.seed,
            fidelity=order.fidelity,
            addresses=addresses,
            payload=payload,
        )
        if order.replayed is not None:
            shutil.copyfile(order.replayed.decisions, folder.replayed)
            self._case = self._case.model_copy(update={"replays": order.replayed.run_id})
        self._case.write(folder.case)
        self.crew.timeouts = self._case.timeouts.variables

    def _start(self) -> None:
        try:
            self._start_all()
        except RunFailed:
            for driver in self.crew.of("driver"):
                if driver.process.poll() in CANNOT_START_EXIT_CODES:
                    raise traffic.Unsupported(driver.died()) from None
            raise

    def _start_all(self) -> None:
        captures = [self.crew.start_capture(host) for host in self._hosts]
        relay = self.crew.start_relay()
        drivers = [self.crew.start_driver(host) for host in self._hosts]
        samplers = [self.crew.start_sampler(host) for host in self._hosts]
        for host in self._hosts:
            text = self.lab.read(host, "/proc/net/snmp").decode()
            self._snmp_before[host] = udp_lines(text)
        self._await("captures", captures, lambda line: sniffer.READY in line)
        for each in captures:
            each.process.tell(sniffer.ASK)
        self._await("the relay", [relay], _says_ready)
        self._change_weather()
        for driver, sampler in zip(drivers, samplers, strict=True):
            sampler.speaks_for = driver
        self._await("drivers", samplers, _says_ready)
        # Nothing of ours has been sent: what is missing now came before the filter stood.
        self._await("captures", captures, sniffer.is_answer)
        kept = [self.crew.start_archive(each) for each in self.order.scenario.archives]
        self._await("archives", kept, archives.says_ready)

    def _change_weather(self) -> None:
        """Let netem begin where it is asked for; the relay begins by itself."""
        assert self._case is not None
        if any(self._case.backend_of(each.link) == "netem" for each in self._case.weather):
            self._netem = Netem(self.lab, self._case, self.order.folder.netem_log)
            self._netem.apply()

    def _await(self, what: str, waiting: Sequence[Watched], ready: Callable[[str], bool]) -> None:
        """Wait for readiness while everything that was started so far must live."""
        self._tell(kind="phase", phase=f"waiting for {what}")
        watch.wait_until_ready(waiting, ready, wanted=self.crew.watched, timeout_s=READY_TIMEOUT_S)

    def _subscribe(self) -> None:
        readers = [
            self.crew.start_workload(role, host, each)
            for each in self.order.scenario.traffic
            for role in ("subscriber", "recorder")
            for host in each.ends(role)
        ]
        self._await("subscribers", readers, _says_ready)

    def _traffic(self) -> None:
        twins = []
        for each in self.order.scenario.traffic:
            started = [
                self.crew.start_workload(each.sender, host, each) for host in each.from_hosts
            ]
            twins += started if len(started) > 1 else []
            for host in each.ends("replicator"):
                self.crew.start_workload("replicator", host, each)
        if twins:
            self._await("publishers", twins, has_publication)
            wall_s = self.order.scenario.budget.wall_ns / 1e9
            let_begin(twins, wanted=self.crew.watched, wall_s=wall_s)
        self.crew.start_saboteur()
        assert self._case is not None
        events = HostEvents(self._case.events, self.crew)
        self._events = events
        traffic.watch_to_the_end(
            workloads=lambda: self.crew.living(*WORKLOADS),
            wanted=lambda: self.crew.living("capture", "relay", "driver", "archive", "sampler"),
            events=events,
            total_bytes=sum(
                each.content.total_bytes * len(each.to_hosts)
                for each in self.order.scenario.traffic
            ),
            wall_s=self.order.scenario.budget.wall_ns / 1e9,
            start_s=READY_TIMEOUT_S,
            tell=self._tell,
        )
        events.require_all_came()
        # A sabotage that did not take place must not pass for one that the judge overlooked.
        watch.require_success(self.crew.of("saboteur"), STOP_TIMEOUT_S)

    # ---- the way back ----

    def stop_because(self, failure: RunFailed) -> None:
        """Note why the run cannot go on: as an error if the harness itself has failed."""
        if failure.ours:
            self.manifest.errors.append(str(failure))
        else:
            self.manifest.stopped = str(failure)

    def back(self, *, hurry: bool) -> None:
        """Stop everything and collect the evidence; never raises for what is already broken.

        `hurry` leaves out the wait that makes captures whole: nobody will judge them.
        """
        self._phase("stop", lambda: self._stop(hurry))
        if not hurry:
            self._complain()
        self._phase("collect", self._collect)

    def take_down(self) -> None:
        """Take the lab down, as the run's last phase."""
        self._phase("down", self.lab.down)

    def _stop(self, hurry: bool) -> None:
        if self._events is not None:
            self._events.close(self.order.folder.host_events)
        workloads = (*WORKLOADS, "saboteur")
        # What is read after the drivers' end is final: no counter and no log changes any more.
        for roles in (workloads, ("archive",), ("driver",), ("sampler",), ("relay",)):
            self.crew.end(*roles)
        if not hurry and self._netem is not None:
            self._close_netem(self._netem)
        if not hurry:
            self._wait_for_captures()
        self.crew.end("capture")

    def _wait_for_captures(self) -> None:
        """Return when each capture has taken every packet, or when it must have."""
        behind = [(each, sniffer.Settling(time.monotonic())) for each in self.crew.of("capture")]
        for each, _ in behind:
            each.new_lines()
        while behind := [
            (each, settling)
            for each, settling in behind
            if each.process.poll() is None and not settling.is_over(time.monotonic())
        ]:
            for each, _ in behind:
                each.process.tell(sniffer.ASK)
            time.sleep(watch.POLL_S)
            for each, settling in behind:
                for line in each.new_lines():
                    settling.hear(line, time.monotonic())

    def _close_netem(self, netem: Netem) -> None:
        try:
            netem.close()
        except LabError as error:
            self.manifest.errors.append(str(error))
        netem.account.write(self.order.folder.netem)

    def _complain(self) -> None:
        """Note which of our own programs say at their end that they could not do their work."""
        for each in self.crew.watched:
            well = each.process.poll() in (None, 0, -signal.SIGTERM, -signal.SIGKILL)
            if each.is_ours and each.asked and not well:
                self.manifest.errors.append(each.died())

    def _collect(self) -> None:
        folder = self.order.folder
        self.manifest.processes = [each.facts(folder.path) for each in self.crew.watched]
        self.manifest.host_facts["steal_ticks"] = facts.steal_ticks() - self._steal_ticks
        self._note_versions()
        self._note_agreement()
        for host in self._hosts:
            log = folder.capture_log(host)
            if log.exists():
                found = sniffer.statistics(log.read_text(errors="replace"))
                if found is not None:
                    found.write(folder.capture_statistics(host))
            if host in self._snmp_before:
                try:
                    after = udp_lines(self.lab.read(host, "/proc/net/snmp").decode())
                except LabError as error:
                    self.manifest.errors.append(f"statistics of host {host}: {error}")
                    continue
                SnmpFacts(self._snmp_before[host], after).write(folder.host(host).snmp)

    def _note_agreement(self) -> None:
        """Note how far the decisions of another run were repeated, if they were to be."""
        if self.order.replayed is None or self._case is None:
            return
        folder = self.order.folder
        ordered, made = read_decisions(folder.replayed), read_decisions(folder.decisions)
        if ordered is not None and made is not None:
            names = self._case.link_names
            agreement(self.order.replayed.run_id, ordered, made, names).write(folder.replay)

    def _note_versions(self) -> None:
        """Note what each driver says of its build, for people also beside the command."""
        remarks = []
        for host, tested in self.manifest.subjects.items():
            tested.version = facts.driver_version(self.order.folder.host(host).counters)
            remarks.append(f"{host}: {tested.peer} {tested.version}".rstrip())
        with contextlib.suppress(OSError), self.order.folder.repro.open("a") as repro:
            repro.write(f"# {', '.join(remarks)}\n")

    @property
    def _hosts(self) -> tuple[str, ...]:
        return self.order.scenario.network.hosts


def _says_ready(line: str) -> bool:
    return line.split(" ", 1)[0] == subject.READY
