"""The phases of one run, in their order, and the way back from any of them.

    prepare -> lab -> start -> subscribe -> traffic -> settle        any of these may fail
                                                        |
                          stop -> collect <-------------+            these always follow
                                                                     (the lab goes down after)

    start: captures, relay, drivers and samplers at once, then wait until each is ready
    stop:  workloads, drivers, samplers (last sample, logs), relay, captures

A run that fails keeps all evidence it has and says why in its manifest. Refuses to judge.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.artifact.agreement import agreement
from harness.artifact.decision import read_decisions
from harness.artifact.host_facts import SnmpFacts, udp_lines
from harness.artifact.manifest import Manifest, Phase, SubjectFacts
from harness.artifact.run_dir import RunDir
from harness.capture import sniffer
from harness.orchestrate import facts, space, subject, traffic, watch
from harness.orchestrate.host_events import HostEvents
from harness.orchestrate.lab import MID, Lab, LabError
from harness.orchestrate.netem import Netem
from harness.orchestrate.payload import Payload
from harness.orchestrate.state import MEMORY_ROOT
from harness.orchestrate.subject import CANNOT_START_EXIT_CODES, Pair, Subject
from harness.orchestrate.twins import has_publication, let_begin
from harness.orchestrate.watch import RunFailed, Watched
from harness.scenario.case import Case, resolve
from harness.scenario.case import Payload as CasePayload
from harness.scenario.model import Scenario, Traffic
from harness.uml.boot import INSIDE_VARIABLE

READY_TIMEOUT_S = 300.0
"""Generous: on a machine's first run every kernel is compiled before a process is ready."""

STOP_TIMEOUT_S = 60.0 if INSIDE_VARIABLE in os.environ else 15.0
"""Longer in a kernel inside a process: one processor, and slow at starting and ending programs."""

SUCCESSOR = "#"
"""Between the name of a process and its number, if another had that name before it."""

QUIET_S = 0.2
"""How long the link is left alone after the last workload has ended."""

Fidelity = Literal["netns", "compose", "sim"]
Tell = Callable[..., None]


@dataclass(frozen=True)
class Replayed:
    """The decisions that a run is to repeat."""

    run_id: str
    """Of the run that made them."""

    decisions: Path
    command: tuple[str, ...]
    """What makes this replay again."""


@dataclass(frozen=True)
class Order:
    """Everything that is known about a run before it begins."""

    run_id: str
    scenario: Scenario
    scenario_file: Path
    seed: int
    payload: Payload
    folder: RunDir
    fidelity: Fidelity
    command: tuple[str, ...]
    tested: Pair
    sabotage: str
    runs: Path
    """The folder of all runs, which a lab can see and in which it notes what it changes."""

    replayed: Replayed | None = None
    """What decides in place of the scenario's rules, if anything does."""

    def side(self, host: str) -> str:
        """Which side of the pair a host is."""
        return "publisher" if host in self.scenario.traffic[0].from_hosts else "subscriber"

    def subject(self, host: str) -> Subject:
        """Who is tested on a host."""
        tested = self.tested
        return tested.publisher if self.side(host) == "publisher" else tested.subscriber


class Run:
    """One run on its way through the phases; the lab is made and destroyed by the caller."""

    def __init__(self, order: Order, lab: Lab, tell: Tell) -> None:
        self.order = order
        self.lab = lab
        self._tell = tell
        self._watched: list[Watched] = []
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

    def _start(self) -> None:
        try:
            self._start_all()
        except RunFailed:
            for driver in self._of("driver"):
                if driver.process.poll() in CANNOT_START_EXIT_CODES:
                    raise traffic.Unsupported(driver.died()) from None
            raise

    def _start_all(self) -> None:
        captures = [self._start_capture(host) for host in self._hosts]
        relay = self._start_relay()
        drivers = [self._start_driver(host) for host in self._hosts]
        samplers = [self._start_sampler(host) for host in self._hosts]
        for host in self._hosts:
            text = self.lab.read(host, "/proc/net/snmp").decode()
            self._snmp_before[host] = udp_lines(text)
        self._await("captures", captures, lambda line: sniffer.READY in line)
        self._await("the relay", [relay], _says_ready)
        self._change_weather()
        for driver, sampler in zip(drivers, samplers, strict=True):
            sampler.speaks_for = driver
        self._await("drivers", samplers, _says_ready)

    def _change_weather(self) -> None:
        """Let netem begin where it is asked for; the relay begins by itself."""
        assert self._case is not None
        if any(self._case.backend_of(each.link) == "netem" for each in self._case.weather):
            self._netem = Netem(self.lab, self._case, self.order.folder.netem_log)
            self._netem.apply()

    def _await(self, what: str, waiting: Sequence[Watched], ready: Callable[[str], bool]) -> None:
        """Wait for readiness while everything that was started so far must live."""
        self._tell(kind="phase", phase=f"waiting for {what}")
        watch.wait_until_ready(waiting, ready, wanted=self._watched, timeout_s=READY_TIMEOUT_S)

    def _subscribe(self) -> None:
        subscribers = [
            self._start_workload("subscriber", host, each)
            for each in self.order.scenario.traffic
            for host in each.to_hosts
        ]
        self._await("subscribers", subscribers, _says_ready)

    def _traffic(self) -> None:
        twins = []
        for each in self.order.scenario.traffic:
            started = [self._start_workload("publisher", host, each) for host in each.from_hosts]
            twins += started if len(started) > 1 else []
        if twins:
            self._await("publishers", twins, has_publication)
            wall_s = self.order.scenario.budget.wall_ns / 1e9
            let_begin(twins, wanted=self._watched, wall_s=wall_s)
        self._start_saboteur()
        assert self._case is not None
        events = HostEvents(self._case.events, self)
        self._events = events
        traffic.watch_to_the_end(
            workloads=lambda: self._living("publisher", "subscriber"),
            wanted=lambda: self._living("capture", "relay", "driver", "sampler"),
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
        watch.require_success(self._of("saboteur"), STOP_TIMEOUT_S)

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
        workloads = ("publisher", "subscriber", "saboteur")
        # What is read after the drivers' end is final: no counter and no log changes any more.
        for roles in (workloads, ("driver",), ("sampler",), ("relay",)):
            self._end(*roles)
        if not hurry and self._netem is not None:
            self._close_netem(self._netem)
        if not hurry:
            self._wait_for_captures()
        self._end("capture")

    def _wait_for_captures(self) -> None:
        """Return when each capture has taken every packet, or when it must have."""
        deadline_s = time.monotonic() + sniffer.SETTLE_S
        behind = self._of("capture")
        for each in behind:
            each.new_lines()
        while behind and time.monotonic() < deadline_s:
            for each in behind:
                each.process.tell(sniffer.ASK)
            time.sleep(watch.POLL_S)
            behind = [each for each in behind if not _has_taken_all(each)]

    def _close_netem(self, netem: Netem) -> None:
        try:
            netem.close()
        except LabError as error:
            self.manifest.errors.append(str(error))
        netem.account.write(self.order.folder.netem)

    def _complain(self) -> None:
        """Note which of our own programs say at their end that they could not do their work."""
        for each in self._watched:
            well = each.process.poll() in (None, 0, -signal.SIGTERM, -signal.SIGKILL)
            if each.is_ours and each.asked and not well:
                self.manifest.errors.append(each.died())

    def _end(self, *roles: str) -> None:
        self.manifest.errors += watch.end(self._of(*roles), STOP_TIMEOUT_S)

    def _collect(self) -> None:
        folder = self.order.folder
        self.manifest.processes = [each.facts(folder.path) for each in self._watched]
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
        if self.order.replayed is None:
            return
        folder = self.order.folder
        ordered, made = read_decisions(folder.replayed), read_decisions(folder.decisions)
        if ordered is not None and made is not None:
            agreement(self.order.replayed.run_id, ordered, made).write(folder.replay)

    def _note_versions(self) -> None:
        """Note what each driver says of its build, for people also beside the command."""
        remarks = []
        for host, tested in self.manifest.subjects.items():
            tested.version = facts.driver_version(self.order.folder.host(host).counters)
            remarks.append(f"{host}: {tested.peer} {tested.version}".rstrip())
        with contextlib.suppress(OSError), self.order.folder.repro.open("a") as repro:
            repro.write(f"# {', '.join(remarks)}\n")

    # ---- processes ----

    @property
    def _hosts(self) -> tuple[str, ...]:
        return self.order.scenario.network.hosts

    def _of(self, *roles: str) -> list[Watched]:
        return [each for each in self._watched if each.role in roles]

    def _living(self, *roles: str) -> list[Watched]:
        """Those that nobody has told to end."""
        return [each for each in self._of(*roles) if not each.asked]

    def on_host(self, host: str, *roles: str) -> list[Watched]:
        """Those of a host that nobody has told to end."""
        return [each for each in self._living(*roles) if each.name.partition("/")[0] == host]

    def kill(self, victim: Watched) -> None:
        """End a process without warning, because the scenario says so."""
        victim.asked = True
        if victim.role == "driver":
            self._retire_sampler(victim)
        victim.process.kill()

    def restart(self, victim: Watched) -> None:
        """Start the successor of a process that was killed."""
        host, _, what = victim.name.partition("/")
        if victim.role == "driver":
            now_ms = time.time_ns() // 1_000_000
            driver = self._start_driver(host, now_ms)
            self._start_sampler(host, now_ms).speaks_for = driver
        else:
            traffic_id = what.partition(SUCCESSOR)[0].removeprefix(f"{victim.role}-")
            streams = {each.id: each for each in self.order.scenario.traffic}
            self._start_workload(victim.role, host, streams[traffic_id])

    def _retire_sampler(self, driver: Watched) -> None:
        """Have a driver's sampler write down what it knows, and put that aside.

        Its files are those of the driver that is about to die; the successor's take their place.
        """
        host = driver.name.partition("/")[0]
        self.manifest.errors += watch.end(self.on_host(host, "sampler"), STOP_TIMEOUT_S)
        files = self.order.folder.host(host)
        past = files.path / f"before-{len(self._of('driver'))}"
        past.mkdir(parents=True, exist_ok=True)
        for file in (files.counters, files.counter_samples, files.pressure, files.held_logs):
            if file.exists():
                file.rename(past / file.name)

    def _spawn(
        self,
        role: str,
        place: str,
        argv: list[str],
        log: Path,
        env: dict[str, str] | None = None,
    ) -> Watched:
        log.parent.mkdir(parents=True, exist_ok=True)
        what = log.stem if role in ("publisher", "subscriber") else role
        before = sum(each.name.split(SUCCESSOR)[0] == f"{place}/{what}" for each in self._watched)
        what += f"{SUCCESSOR}{before + 1}" if before else ""
        offset = log.stat().st_size if before and log.exists() else 0
        process = self.lab.spawn(place, argv, env=env, log=log)
        watched = Watched(f"{place}/{what}", process, role, log, offset=offset)
        self._watched.append(watched)
        return watched

    def _start_capture(self, host: str) -> Watched:
        file = self.lab.path(self.order.folder.capture(host))
        argv = sniffer.command(self.lab.interface(host), file)
        return self._spawn("capture", host, argv, self.order.folder.capture_log(host))

    def _start_relay(self) -> Watched:
        folder = self.order.folder
        argv = subject.relay_command(
            self.lab.python(MID),
            case=self.lab.path(folder.case),
            interfaces=self.lab.mid_interfaces(),
            out=self.lab.path(folder.path),
        )
        return self._spawn("relay", MID, argv, folder.relay_log)

    def _directory(self, host: str) -> str:
        return f"{self.lab.shared_memory(host)}/aeron"

    def _start_driver(self, host: str, killed_ms: int = 0) -> Watched:
        tested, where = self.order.subject(host), self._where(host)
        log = self.order.folder.host(host).driver_log
        env = {**tested.variables(*where), **self._timeouts()}
        if killed_ms:
            env |= subject.TAKE_DIRECTORY
        return self._spawn("driver", host, tested.driver_command(*where), log, env)

    def _timeouts(self) -> dict[str, str]:
        assert self._case is not None
        return self._case.timeouts.variables

    def _where(self, host: str) -> tuple[str, str, str]:
        """What a subject's words leave open: interpreter, driver's directory, libraries."""
        brought = self.order.subject(host).libraries
        libraries = "" if brought is None else self.lab.path(brought)
        return self.lab.python(host), self._directory(host), libraries

    def _start_sampler(self, host: str, killed_ms: int = 0) -> Watched:
        files = self.order.folder.host(host)
        argv = subject.sampler_command(
            self.lab.python(host),
            directory=self._directory(host),
            out=self.lab.path(files.path),
            after_ms=killed_ms,
        )
        return self._spawn("sampler", host, argv, files.sampler_log)

    def _start_workload(self, role: str, host: str, stream: Traffic) -> Watched:
        files = self.order.folder.host(host)
        log = files.saboteur_log if role == "saboteur" else getattr(files, role)(stream.id).log
        ends = stream.from_hosts if role == "publisher" else stream.to_hosts
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
        env = {**tested.variables(*self._where(host)), **self._timeouts()}
        return self._spawn(role, host, argv, log, env)

    def _start_saboteur(self) -> None:
        if subject.SABOTAGE_ROLES.get(self.order.sabotage) == "saboteur":
            first = self.order.scenario.traffic[0]
            self._start_workload("saboteur", first.to_host, first)


def _has_taken_all(capture: Watched) -> bool:
    """Whether the last thing that a capture said is that it has nothing left to take."""
    said = [sniffer.has_taken_all(line) for line in capture.new_lines()]
    return next((each for each in reversed(said) if each is not None), False)


def _says_ready(line: str) -> bool:
    return line.split(" ", 1)[0] == subject.READY
