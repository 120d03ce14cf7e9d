"""A whole run of a case on virtual time, leaving the run folder that every fidelity leaves.

    open the world -> subscribers -> publishers -> all at the end -> settle -> files

The applications step every 100 simulated microseconds, as real ones that sleep in between. What the
simulator cannot stand in for is Unsupported, before anything begins.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path

import numpy as np

from driver.base.errors import DriverError
from driver.command.command_type import ErrorCode
from harness.artifact.decision import LINKS, read_repeatable
from harness.artifact.host_facts import SnmpFacts
from harness.artifact.ledger import Ledger
from harness.artifact.manifest import ProcessExit
from harness.artifact.run_dir import RunDir
from harness.artifact.simulation import Simulation
from harness.middlebox.fates import compile_fates
from harness.middlebox.report import DecisionLog, link_account, rule_accounts, weather_account
from harness.middlebox.state import HOLD_OVERFLOWS, SESSION_OVERFLOWS
from harness.middlebox.weather import is_on
from harness.scenario.case import Case
from harness.simulator import event_log, flight, world_state
from harness.simulator.blame import in_one_line, is_drivers
from harness.simulator.capture import Captures
from harness.simulator.counter_samples import CounterSamples
from harness.simulator.publisher import Publisher
from harness.simulator.sabotage import Sabotage
from harness.simulator.subscriber import Subscriber
from harness.simulator.virtual_time import EPOCH_NS, NS_PER_MS, START_NS
from harness.simulator.world import SimulatedWorld, open_world
from harness.workload.stop import SubjectError

TAPE_BYTES = 16 << 20
STEP_NS = 100_000
"""Between two steps of the applications."""
SETTLE_NS = 200 * NS_PER_MS
DRAIN_NS = 12_000 * NS_PER_MS
"""Longest time for the last frames to land: above the longest hold that a scenario can order."""
TELL_S = 0.2
_CLOCK_READERS = ("media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset")


class Unsupported(Exception):
    """What the case asks for and a simulated world does not have."""


def require_supported(case: Case) -> None:
    """Raise Unsupported unless a simulated world has all that a case needs."""
    if case.links:
        raise Unsupported(f"sim has two hosts and one link; the case has {len(case.hosts)} hosts")
    for host in case.hosts:
        if ip_address(host.address).version != 4:
            raise Unsupported(f"sim has IPv4 hosts only; {host.name} is {host.address}")
    if case.backend != "relay":
        raise Unsupported(f"sim has no {case.backend} that could deliver weather, only the relay's")
    for event in case.events:
        raise Unsupported(f"sim cannot {event.action} a process (event {event.id})")
    if case.timeouts.variables:
        raise Unsupported("sim has the default time-outs only")
    for traffic in case.traffic:
        for name in _CLOCK_READERS:
            if f"{name}=" in f"{traffic.channel}|{traffic.receive}":
                raise Unsupported(
                    f"sim has no {name} (traffic {traffic.id}): such stamps are of the real clock"
                )


class Rehearsal:
    """One run under way."""

    def __init__(self, case: Case, folder: RunDir, memory: Path, sabotage: str) -> None:
        require_supported(case)
        self._case, self._folder, self._memory = case, folder, memory
        self._sabotage = Sabotage(sabotage)
        self._publishers: list[Publisher] = []
        self._subscribers: list[Subscriber] = []
        self._overran = ""
        self._driver_error = ""
        self._traffic_ns = [0, 0]
        self._told_s = 0.0

    def run(self) -> int:
        """Make the run and leave its files. Returns 0, or 1 if the subject failed."""
        case, folder = self._case, self._folder
        fates = compile_fates(case, read_repeatable(folder.replayed)) if case.replays else None
        with (
            ExitStack() as closing,
            open_world(case, self._memory, tape_length=TAPE_BYTES, fates=fates) as world,
        ):
            captures = Captures(folder, [each.name for each in case.hosts], world.kernel.events)
            decisions = DecisionLog(folder.decisions)
            samples = [CounterSamples(each, folder.host(each.name)) for each in world.hosts]

            def close_samples() -> None:
                for each in samples:
                    each.close(self._now_ns(world))

            closing.callback(close_samples)

            def empty() -> None:
                captures.drain()
                decisions.drain(world.kernel.engine)

            world.on_full = empty
            try:
                self._walk(world, samples)
            except Exception as error:
                if isinstance(error, Unsupported) or not is_drivers(error):
                    raise
                self._driver_error = f"raised {in_one_line(error)}"
                print(traceback.format_exc(), flush=True)
            finally:
                captures.close()
                decisions.drain(world.kernel.engine)
                decisions.close()
                self._write(world)
        return int(bool(self._driver_error) or any(each.error for each in self._parties))

    @property
    def _parties(self) -> list[Publisher | Subscriber]:
        return [*self._publishers, *self._subscribers]

    def _walk(self, world: SimulatedWorld, samples: list[CounterSamples]) -> None:
        payload = np.fromfile(self._case.payload.path, dtype=np.uint8)
        clock = self._clock(world)
        for traffic in self._case.traffic:
            host = world.host(traffic.to_host)
            flips = self._sabotage.flips_byte(self._case, traffic)
            files = self._folder.host(host.name)
            self._subscribers.append(
                Subscriber(traffic, host.client, files, clock, flips_byte=flips)
            )
        try:
            self._until(
                world, samples, lambda: all(each.is_subscribed for each in self._subscribers)
            )
            print("ready", flush=True)
            for traffic in self._case.traffic:
                client = world.host(traffic.from_host).client
                skips = self._sabotage.skips_message(self._case, traffic)
                self._publishers.append(
                    Publisher(traffic, self._case.seed, payload, client, clock, skips=skips)
                )
            self._traffic_ns = [clock(), clock()]
            self._until(world, samples, self._is_over)
            self._traffic_ns[1] = clock()
            self._settle(world, samples)
        finally:
            for publisher in self._publishers:
                publisher.write(self._folder.host(publisher.traffic.from_host))
            for subscriber in self._subscribers:
                subscriber.close()

    def _is_over(self) -> bool:
        parties = self._parties
        return all(each.is_done for each in parties) or any(each.error for each in parties)

    def _until(
        self, world: SimulatedWorld, samples: list[CounterSamples], condition: Callable[[], bool]
    ) -> None:
        end_ns = world.now_ns + self._case.wall_ns
        while not condition():
            if world.now_ns >= end_ns:
                self._overran = (
                    f"the budget of {self._case.wall_ns / 1e9:g} s of simulated time is over; "
                    f"{self._progress()}"
                )
                return
            self._step(world, samples)

    def _step(self, world: SimulatedWorld, samples: list[CounterSamples]) -> None:
        for each in self._parties:
            if not each.error:
                try:
                    each.step()
                except (DriverError, SubjectError) as error:
                    if getattr(error, "code", None) == ErrorCode.NOT_SUPPORTED:
                        raise Unsupported(str(error)) from error
                    each.error = f"{type(error).__name__}: {error}"
        self._sabotage.step(world, self._case, self._subscribers)
        now_ns = self._now_ns(world)
        for sampled in samples:
            sampled.look(now_ns)
        self._tell()
        world.run_until(world.now_ns + STEP_NS)

    def _settle(self, world: SimulatedWorld, samples: list[CounterSamples]) -> None:
        """Let the last frames land, however long the middlebox keeps them."""
        end_ns, latest_ns = world.now_ns + SETTLE_NS, world.now_ns + DRAIN_NS
        while world.now_ns < end_ns or (_waits(world) and world.now_ns < latest_ns):
            self._step(world, samples)

    def _clock(self, world: SimulatedWorld) -> Callable[[], int]:
        return lambda: self._now_ns(world)

    @staticmethod
    def _now_ns(world: SimulatedWorld) -> int:
        return EPOCH_NS + world.now_ns

    def _progress(self) -> str:
        sent = sum(each.sent_bytes for each in self._publishers)
        read = sum(each.read_bytes for each in self._subscribers)
        return f"published {sent} and delivered {read} of {self._total_bytes} bytes"

    @property
    def _total_bytes(self) -> int:
        return sum(each.total_bytes for each in self._case.traffic)

    def _tell(self) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= TELL_S:
            self._told_s = now_s
            sent = sum(each.sent_bytes for each in self._publishers)
            read = sum(each.read_bytes for each in self._subscribers)
            print(f"simulated {sent} {read} {self._total_bytes}", flush=True)

    def _write(self, world: SimulatedWorld) -> None:
        """Leave the accounts of middlebox and sockets, and what the world says of itself."""
        folder, kernel = self._folder, world.kernel
        links = {}
        for link, name in enumerate(LINKS):
            account = link_account(kernel.engine, link)
            account.send_failures = int(kernel.lost[1 - link, world_state.FLOODED])
            account.lag_ns = {"p50": 0, "p99": 0, "max": 0}
            if is_on(kernel.weather, link):
                account.weather = weather_account(kernel.weather, link)
                account.weather.sent -= account.send_failures
            links[name] = account
        Ledger(links, rule_accounts(kernel.engine, self._case)).write(folder.ledger)
        for index, host in enumerate(world.hosts):
            lost = kernel.lost[index]
            SnmpFacts(
                before={"RcvbufErrors": 0, "NoPorts": 0},
                after={
                    "RcvbufErrors": int(lost[world_state.OVERFLOWS]),
                    "NoPorts": int(lost[world_state.UNHEARD]),
                },
            ).write(folder.host(host.name).snmp)
        state = kernel.events.state
        Simulation(
            digest=world.digest,
            datagrams=int(state[event_log.DATAGRAMS]),
            changes=int(state[event_log.CHANGES]),
            simulated_ns=world.now_ns - START_NS,
            traffic_started_ns=self._traffic_ns[0],
            traffic_ended_ns=self._traffic_ns[1],
            overran=self._overran,
            exits=self._exits(world),
        ).write(folder.simulation)
        print(f"events {world.digest}", flush=True)
        for index, what in (
            (HOLD_OVERFLOWS, "frames found no room to wait and passed"),
            (SESSION_OVERFLOWS, "SETUP frames found no room for a session"),
        ):
            if kernel.engine.state[index]:
                raise RuntimeError(f"{kernel.engine.state[index]} {what}")

    def _exits(self, world: SimulatedWorld) -> list[ProcessExit]:
        log = self._folder.simulator_log.name
        error = self._driver_error
        exits = [
            ProcessExit(f"{each.name}/driver", "driver", int(bool(error)), not error, log, error)
            for each in world.hosts
        ]
        for each in self._parties:
            is_publisher = isinstance(each, Publisher)
            role = "publisher" if is_publisher else "subscriber"
            place = each.traffic.from_host if is_publisher else each.traffic.to_host
            name = f"{place}/{role}-{each.traffic.id}"
            code = int(bool(each.error)) if each.is_done or each.error else None
            exits.append(ProcessExit(name, role, code, code is None, log, each.error))
        return exits


def _waits(world: SimulatedWorld) -> bool:
    """Whether any datagram is still on its way."""
    kernel = world.kernel
    return bool(
        kernel.engine.waiting.counts[0]
        or kernel.weather.waiting.counts[0]
        or kernel.there.ends[flight.HEAD] != kernel.there.ends[flight.TAIL]
        or kernel.back.ends[flight.HEAD] != kernel.back.ends[flight.TAIL]
    )
