"""Derives all parameters of a swarm trial from a seed: streams, channel configuration, traffic,
link delay and faults.

    seed --> 1 to 3 streams between two hosts, see `stream_choice`; possibly a slow reader
         --> the wire's delay, the length of a turn and the agents' maximum sleep
         --> up to 5 fault rules, see `faults`
         --> the share of each stream that is left for the recovery phase, when no fault is active

The whole choice is printed on one line before the trial starts and depends on the seed alone. Every
configuration that can be chosen here must work.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload
from windtunnel.harness.simulator.swarm import recovery_modes
from windtunnel.harness.simulator.swarm.faults import MS, US, choose_fault, fault_text, spread
from windtunnel.harness.simulator.swarm.known_defects import without_known_defects
from windtunnel.harness.simulator.swarm.stream_choice import ADDRESSES, KIB, choose_stream
from windtunnel.harness.simulator.swarm.trial_drivers import AERON_BATCHES, OURS, real_hosts
from windtunnel.harness.simulator.world.host import NO_SETTINGS

FRAMES_MIN, FRAMES_MAX = 200, 10_000
FAULTS_MAX = 5

IDLE_MIN_NS, IDLE_MAX_NS = 20 * US, 1_000 * US
"""Range of the longest sleep of agents without work. Aeron's idle strategy parks for up to 1 ms."""
READS_ALL = 1 << 30


@dataclass(frozen=True)
class Reader:
    """The pace of a simulated reader: how many frames it reads at once, and for how long it then
    pauses.
    """

    visit_frames: int = READS_ALL
    rest_ns: int = 0


@dataclass(frozen=True)
class Choice:
    """All parameters of one swarm trial."""

    case: Case
    delay_ns: int
    """Delay of the wire in each direction."""
    turn_ns: int
    idle_max_ns: int
    bursts: tuple[int, ...]
    """Per stream: maximum number of messages that its publisher offers in one turn."""
    readers: tuple[Reader, ...]
    """Per stream: the pace of its reader."""
    paths: tuple[str, ...]
    """Per stream: name of its path between the hosts, see `stream_path`."""
    recovery_share: float
    """Share of each stream that is published only in the recovery phase, without faults."""
    safety_ns: int
    """Maximum duration of the phase with faults."""
    frames: int
    """Approximate total number of frames in all streams."""
    real: tuple[str, ...] = ()
    """Names of the hosts with the real C driver."""
    settings: Mapping[str, str] = NO_SETTINGS
    """Environment variables of the other hosts' drivers."""

    @property
    def text(self) -> str:
        """Return the trial's parameters as one line of text."""
        streams = " ".join(
            f"[{each.from_host}->{each.to_host} {path} {each.publication} "
            f"{_size(each.total_bytes)} of {each.shortest_bytes}..{each.longest_bytes} "
            f"{_parameters(each.channel)} / "
            f"{_parameters(each.receive) or 'reliable'}]"
            for each, path in zip(self.case.traffic, self.paths, strict=True)
        )
        faults = " ".join(fault_text(each) for each in self.case.faults)
        slow = " ".join(
            f"s{index} reads {each.visit_frames} then pauses {each.rest_ns / US:g}us"
            for index, each in enumerate(self.readers)
            if each.rest_ns
        )
        real = "".join(f"{each} has a real driver " for each in self.real)
        return (
            f"{real}frames~{self.frames} delay={self.delay_ns / US:g}us "
            f"turn={self.turn_ns / US:g}us "
            f"idle={self.idle_max_ns / US:g}us recovery={self.recovery_share:.0%} {streams} "
            f"{slow}{' ' if slow else ''}{faults or 'no faults'}"
        )


def choose(
    seed: int,
    *,
    frames: int | None = None,
    modes: bool = False,
    drivers: str = OURS,
    is_compared: bool = False,
) -> Choice:
    """Derive a trial from a seed.

    `drivers` selects the hosts with the real C driver, see `trial_drivers`. `frames` overrides the
    number of frames that the seed would choose. With `modes`, some streams have Windtunnel's modes
    of loss recovery. With `is_compared`, our driver reads and sends as many datagrams in a duty
    cycle as the C driver, and the trial has the faults of the one with the C driver.
    """
    rng = random.Random(f"swarm {seed}")
    frame_count = spread(rng, FRAMES_MIN, FRAMES_MAX)
    frame_count = frame_count if frames is None else frames
    count = rng.choices((1, 2, 3), (6, 3, 1))[0]
    chosen = [choose_stream(rng, index, max(20, frame_count // count)) for index in range(count)]
    traffic = tuple(each for each, _ in chosen)
    if modes:
        traffic = recovery_modes.with_modes(seed, traffic)
    faults = [choose_fault(rng, index, count) for index in range(rng.randint(0, FAULTS_MAX))]
    real = real_hosts(drivers, seed)
    if real or is_compared:
        # The same generator, so all else is as with other drivers.
        faults = [left for each in faults if (left := without_known_defects(each))]
    case = Case(
        name="swarm",
        about="chosen by a seed",
        seed=seed,
        fidelity="sim",
        hosts=(
            HostCase(name="a", address=ADDRESSES[0]),
            HostCase(name="b", address=ADDRESSES[1]),
        ),
        payload=Payload(path="payload.bin", sha256="", length_bytes=0),
        traffic=traffic,
        faults=tuple(faults),
        expect=(),
        wall_ns=60_000 * MS,
    )
    turn_ns = rng.choice((1, 2, 5, 10, 20, 50)) * US
    return Choice(
        case=case,
        delay_ns=spread(rng, US, 2_000 * US),
        turn_ns=turn_ns,
        idle_max_ns=max(turn_ns, spread(rng, IDLE_MIN_NS, IDLE_MAX_NS)),
        bursts=tuple(rng.choice((1, 4, 32, 1_000)) for _ in traffic),
        readers=tuple(_reader(rng) for _ in traffic),
        paths=tuple(path for _, path in chosen),
        recovery_share=rng.choice((0.02, 0.1, 0.3)),
        safety_ns=rng.choice((200, 500, 1_000)) * MS,
        frames=frame_count,
        real=real,
        settings=AERON_BATCHES if is_compared else NO_SETTINGS,
    )


def _reader(rng: random.Random) -> Reader:
    """Choose a reader's pace, which usually keeps up with the stream."""
    if rng.random() < 0.85:
        return Reader()
    return Reader(rng.choice((8, 64, 256)), spread(rng, 20 * US, 500 * US))


def _size(count_bytes: int) -> str:
    return f"{count_bytes / KIB:.0f}KiB" if count_bytes >= 10 * KIB else f"{count_bytes}B"


def _parameters(channel: str) -> str:
    """Return the parameters of a channel URI after the first one, separated by `|`."""
    return "|".join(part for part in channel.split("|")[1:] if part)
