"""Runs one swarm trial: a phase with faults, then a recovery phase in which every stream must
complete.

    choose, open the world -> connect -> publish up to the gates      safety: faults active
               remove the faults -> publish the rest -> read all      liveness: recovery phase
                                 settle -> the counters agree

Every turn is audited, and the first violation ends the trial. A stream may end in a known stall of
the protocol, see `trial_end`. A stall is reported separately. Misbehaviour of the driver is the
trial's outcome and raises no exception, but a driver or client that runs forever in one turn
ends the process: with SIGABRT, like a real driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.middlebox.engine.prf import DRAW_BITS
from windtunnel.harness.middlebox.engine.state import DECISIONS
from windtunnel.harness.middlebox.rules import INDEPENDENT
from windtunnel.harness.simulator.audit import stream_record
from windtunnel.harness.simulator.audit.stream_record import (
    DECISIONS_SEEN,
    ENDS,
    GATES,
    GOAL,
    NO_GOAL,
)
from windtunnel.harness.simulator.output.trial_folder import NO_OBSERVER, TrialObserver
from windtunnel.harness.simulator.stuck_program import end_stuck_process
from windtunnel.harness.simulator.swarm.choice import Choice
from windtunnel.harness.simulator.swarm.trial_end import (
    describe_stuck,
    disagreement,
    is_known_stall,
    wire_loss,
)
from windtunnel.harness.simulator.swarm.trial_figures import read_figures
from windtunnel.harness.simulator.swarm.trial_plan import lay_out
from windtunnel.harness.simulator.swarm.trial_sabotage import NEVER_HEAL, sabotage_stream
from windtunnel.harness.simulator.swarm.trial_stream import Stream
from windtunnel.harness.simulator.turn_watch import TurnWatch
from windtunnel.harness.simulator.world.host_memory import HostMemories
from windtunnel.harness.simulator.world.virtual_time import START_NS
from windtunnel.harness.simulator.world.world import SimulatedWorld, open_world
from windtunnel.harness.simulator.world.world_state import OVERFLOWS, UNBOUND

SHELL_INTERVAL_NS = 100_000_000
COUNTERS_WATCHED = 96
"""Number of counters watched per host, more than three streams use."""
LIVENESS_NS = 5_000_000_000
"""Time that streams may take to complete in the recovery phase, in addition to `_time_needed_ns`.
"""
ROUNDS_PER_WINDOW = 8
SETTLE_NS = 2_000_000_000
STEP_NS = 10_000_000
COMPARED_STEP_NS = 1_000_000
ALWAYS = 1 << DRAW_BITS
"""Threshold of a rule that matches every frame."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a swarm trial: the violation if there is one, known stalls, and totals."""

    violation: str
    """Description of the violation, or empty."""
    stalls: tuple[str, ...]
    """Descriptions of the streams in a known protocol stall, one per stream."""
    digest: str
    frames: int
    """Number of planned frames in all streams."""
    simulated_ns: int
    figures: dict[str, int]
    """The trial's figures by name, see `trial_figures`."""


class Trial:
    """One swarm trial: a simulation whose streams and faults were chosen from a seed."""

    def __init__(
        self,
        choice: Choice,
        memory: Path,
        *,
        sabotage: str = "",
        observer: TrialObserver = NO_OBSERVER,
        host_memories: HostMemories | None = None,
    ) -> None:
        self._choice, self._memory = choice, memory
        self._host_memories = host_memories
        self._sabotage, self._observer = sabotage, observer
        self._stalls: dict[int, str] = {}
        self._logs, self._audit = lay_out(choice)
        self._frames = sum(len(log.frames) for log in self._logs)

    def run(self) -> Outcome:
        """Run both phases and return the trial's outcome."""
        choice = self._choice
        with open_world(
            choice.case,
            self._memory,
            audit=self._audit,
            tape_length=self._observer.tape_length,
            delay_ns=choice.delay_ns,
            turn_ns=choice.turn_ns,
            idle_max_ns=choice.idle_max_ns,
            shell_interval_ns=SHELL_INTERVAL_NS,
            counters_watched=COUNTERS_WATCHED,
            real=choice.real,
            settings=choice.settings,
            host_memories=self._host_memories,
        ) as world:
            world.on_full = lambda: self._drain(world)
            for host in world.hosts:
                host.connect()
            self._observer.open(world)
            streams: list[Stream] = []
            try:
                with TurnWatch(lambda: world.now_ns, partial(end_stuck_process, world)):
                    violation = self._phases(world, streams)
            finally:
                self._observer.close(world)
                for each in streams:
                    for log in each.mapped:
                        log.close()
            if violation and (lost := wire_loss(world, world.between.lost[:, OVERFLOWS])):
                raise RuntimeError(f"{lost}; then {violation}")
            stalls = tuple(self._stalls.values())
            figures = read_figures(world, self._audit, START_NS)
            return Outcome(violation, stalls, world.digest, self._frames, world.now_ns, figures)

    def _drain(self, world: SimulatedWorld) -> None:
        self._observer.drain(world)
        world.between.engine.state[DECISIONS] = 0
        self._audit.state[DECISIONS_SEEN] = 0

    def _phases(self, world: SimulatedWorld, streams: list[Stream]) -> str:
        end_ns = world.now_ns + self._choice.safety_ns
        streams += [self._begin(world, index) for index in range(len(self._logs))]
        if self._choice.real:
            # A real driver has sent SMs to a control address whose publication was added later.
            world.between.lost[:, UNBOUND] = 0
        self._connect(world, streams, end_ns)
        self._audit.state[GOAL] = GATES
        self._advance(world, end_ns)
        sabotage_stream(self._sabotage, world, self._audit)
        self._enter_recovery(world)
        end_ns = world.now_ns + LIVENESS_NS + self._time_needed_ns()
        self._connect(world, streams, end_ns)
        silent = [each.traffic.id for each in streams if each.image is None]
        if not self._violation and silent:
            return f"liveness: {', '.join(silent)} did not connect in the recovery phase"
        self._audit.state[GOAL] = ENDS
        self._advance(world, end_ns)
        return self._violation or self._end(world)

    def _begin(self, world: SimulatedWorld, index: int) -> Stream:
        traffic = self._choice.case.traffic[index]
        near, far = world.host(traffic.from_host), world.host(traffic.to_host)
        subscription_id = far.client.async_add_subscription(traffic.receive, traffic.stream_id)
        subscription = world.until(
            lambda: far.client.get_subscription(subscription_id), "a subscription"
        )
        for _, source in traffic.sources:
            subscription.async_add_destination(source)
        add = near.client.async_add_publication
        if traffic.publication == "exclusive":
            add = near.client.async_add_exclusive_publication
        stream = Stream(
            index,
            traffic,
            near,
            far,
            self._logs[index],
            subscription_id,
            add(traffic.channel, traffic.stream_id),
        )
        publication = self._find_publication(world, stream)
        for destination in traffic.destinations:
            publication.async_add_destination(destination)
        record = self._audit.streams[index]
        record["session_id"] = publication.session_id
        record["stream_id"] = traffic.stream_id
        record["initial_term_id"] = publication.initial_term_id
        record["is_open"] = 1
        return stream

    def _find_publication(self, world: SimulatedWorld, stream: Stream) -> Publication:
        """Wait until the driver has created a stream's publication.

        A real driver does this in its own turn and sends a SETUP at once. Its client must look
        after each turn, so that the audit knows the stream before the first SM arrives.
        """
        if not stream.near.native[0]:
            built_in: Publication = world.until(stream.find_publication, "a publication")
            return built_in

        def found() -> Publication | None:
            stream.near.client.invoke()
            return stream.find_publication()

        step_ns = self._choice.turn_ns
        real: Publication = world.until(found, "a publication", step_ns=step_ns)
        return real

    def _connect(self, world: SimulatedWorld, streams: list[Stream], end_ns: int) -> None:
        """Wait until every stream has an image, a violation is found, or time runs out."""
        # A real driver's client looks about every millisecond, so both trials begin at like times.
        step_ns = COMPARED_STEP_NS if self._choice.settings else STEP_NS
        pending = [each for each in streams if each.image is None]
        while pending and world.now_ns < end_ns and not self._violation:
            for each in list(pending):
                if each.find_image() is not None:
                    each.attach(self._audit)
                    pending.remove(each)
            if pending:
                world.advance(min(end_ns, world.now_ns + step_ns))

    def _advance(self, world: SimulatedWorld, end_ns: int) -> None:
        """Run the simulation until all streams have reached the goal of this phase, a violation is
        found, or time runs out.
        """
        while not stream_record.needs_shell(self._audit) and world.now_ns < end_ns:
            self._observer.look(world)
            world.advance(end_ns)
        self._audit.state[GOAL] = NO_GOAL

    def _enter_recovery(self, world: SimulatedWorld) -> None:
        """Enter the recovery phase by disabling the fault rules.

        Held frames are released when due.
        """
        rules = world.between.engine.rules
        if self._sabotage == NEVER_HEAL:
            rules["chance"], rules["threshold"] = INDEPENDENT, ALWAYS
        else:
            rules["links"] = 0
        for stream in self._audit.streams:
            stream["gate"] = stream["message_end"]

    def _time_needed_ns(self) -> int:
        """Return an upper limit on the time that all streams need to complete one after another."""
        choice = self._choice
        total_ns = 0
        for stream, traffic, reader in zip(
            self._audit.streams, choice.case.traffic, choice.readers, strict=True
        ):
            window = min(traffic.receiver_window_bytes or 0, traffic.term_length // 2)
            windows = 1 + int(stream["end_position"] - stream["position"]) // max(1, window // 4)
            round_ns = 2 * choice.delay_ns + ROUNDS_PER_WINDOW * choice.idle_max_ns
            messages = int(stream["message_end"] - stream["next_message"])
            total_ns += windows * round_ns * 2 + 4 * messages * choice.turn_ns
            frames = int(stream["frame_end"] - stream["next_frame"])
            visits = 1 + frames // reader.visit_frames
            total_ns += 2 * visits * (reader.rest_ns + choice.idle_max_ns)
        return total_ns

    @property
    def _violation(self) -> str:
        return stream_record.violation_text(self._audit)

    def _end(self, world: SimulatedWorld) -> str:
        """Check that every stream has completed or is in a stall that Aeron's protocol permits.

        Returns a description of the failure, or an empty string.
        """
        for index, (traffic, log) in enumerate(
            zip(self._choice.case.traffic, self._logs, strict=True)
        ):
            if wrong := describe_stuck(self._audit.streams[index], traffic):
                if not is_known_stall(self._audit, index, log):
                    return wrong
                self._stalls[index] = wrong
        return self._settle(world)

    def _settle(self, world: SimulatedWorld) -> str:
        """Run the simulation until all position counters equal the end of their stream and no error
        is logged, or until time runs out. Returns the remaining problem, or an empty string.
        """
        end_ns = world.now_ns + SETTLE_NS
        if self._choice.real or self._choice.settings:
            # Count what is on its way. Our counters agree later, since Python looks less often.
            world.advance(world.now_ns + STEP_NS)
        stalled = set(self._stalls)
        while (wrong := disagreement(world, self._audit, stalled)) and world.now_ns < end_ns:
            if self._violation:
                return self._violation
            world.advance(world.now_ns + STEP_NS)
        return wrong
