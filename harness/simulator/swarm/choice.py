"""What a seed chooses: streams, their configuration and traffic, the wire, the faults.

    seed --> 1 to 3 streams between two hosts, see `swarm_stream`; a reader that takes its time
         --> the wire's delay, the agents' pace and how long they sleep
         --> up to 5 fault rules, see `swarm_faults`
         --> when the weather heals: how much of each stream is left for then

Everything is printed in one line before anything happens, and is a function of the seed alone: any
configuration that is chosen here must work. Refuses to know how a trial is run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload
from windtunnel.harness.simulator.swarm.faults import MS, US, choose_fault, fault_text, spread
from windtunnel.harness.simulator.swarm.stream_choice import ADDRESSES, KIB, choose_stream

FRAMES_MIN, FRAMES_MAX = 200, 10_000
FAULTS_MAX = 5

IDLE_MIN_NS, IDLE_MAX_NS = 20 * US, 1_000 * US
"""How long agents without work sleep at most; Aeron's idle strategy parks for up to 1 ms."""
READS_ALL = 1 << 30


@dataclass(frozen=True)
class Reader:
    """How a stream is read: so many frames, then a rest."""

    visit_frames: int = READS_ALL
    rest_ns: int = 0


@dataclass(frozen=True)
class Choice:
    """Everything about one trial."""

    case: Case
    delay_ns: int
    """Of the wire, each way."""
    turn_ns: int
    idle_max_ns: int
    bursts: tuple[int, ...]
    """By stream: messages that its publisher offers in one turn at most."""
    readers: tuple[Reader, ...]
    """By stream."""
    ways: tuple[str, ...]
    """By stream: how it gets from host to host, see `swarm_way`."""
    healed_share: float
    """How much of each stream is published only when all faults are healed."""
    safety_ns: int
    """Longest time with faults."""
    frames: int
    """About how many frames all streams have together."""

    @property
    def text(self) -> str:
        """All of it in one line."""
        streams = " ".join(
            f"[{each.from_host}->{each.to_host} {way} {each.publication} "
            f"{_size(each.total_bytes)} of {each.shortest_bytes}..{each.longest_bytes} "
            f"{_parameters(each.channel)} / "
            f"{_parameters(each.receive) or 'reliable'}]"
            for each, way in zip(self.case.traffic, self.ways, strict=True)
        )
        faults = " ".join(fault_text(each) for each in self.case.faults)
        slow = " ".join(
            f"s{index} reads {each.visit_frames} then rests {each.rest_ns / US:g}us"
            for index, each in enumerate(self.readers)
            if each.rest_ns
        )
        return (
            f"frames~{self.frames} delay={self.delay_ns / US:g}us turn={self.turn_ns / US:g}us "
            f"idle={self.idle_max_ns / US:g}us healed={self.healed_share:.0%} {streams} "
            f"{slow}{' ' if slow else ''}{faults or 'no faults'}"
        )


def choose(seed: int, *, frames: int | None = None) -> Choice:
    """The trial of a seed; `frames` in place of the number that it would choose."""
    chance = random.Random(f"swarm {seed}")
    wanted = spread(chance, FRAMES_MIN, FRAMES_MAX)
    wanted = wanted if frames is None else frames
    count = chance.choices((1, 2, 3), (6, 3, 1))[0]
    chosen = [choose_stream(chance, index, max(20, wanted // count)) for index in range(count)]
    traffic = tuple(each for each, _ in chosen)
    case = Case(
        name="swarm",
        about="a seed's choice",
        seed=seed,
        fidelity="sim",
        hosts=(
            HostCase(name="a", address=ADDRESSES[0]),
            HostCase(name="b", address=ADDRESSES[1]),
        ),
        payload=Payload(path="payload.bin", sha256="", length_bytes=0),
        traffic=traffic,
        faults=tuple(
            choose_fault(chance, index, count) for index in range(chance.randint(0, FAULTS_MAX))
        ),
        expect=(),
        wall_ns=60_000 * MS,
    )
    turn_ns = chance.choice((1, 2, 5, 10, 20, 50)) * US
    return Choice(
        case=case,
        delay_ns=spread(chance, US, 2_000 * US),
        turn_ns=turn_ns,
        idle_max_ns=max(turn_ns, spread(chance, IDLE_MIN_NS, IDLE_MAX_NS)),
        bursts=tuple(chance.choice((1, 4, 32, 1_000)) for _ in traffic),
        readers=tuple(_reader(chance) for _ in traffic),
        ways=tuple(way for _, way in chosen),
        healed_share=chance.choice((0.02, 0.1, 0.3)),
        safety_ns=chance.choice((200, 500, 1_000)) * MS,
        frames=wanted,
    )


def _reader(chance: random.Random) -> Reader:
    """Mostly one that keeps up."""
    if chance.random() < 0.85:
        return Reader()
    return Reader(chance.choice((8, 64, 256)), spread(chance, 20 * US, 500 * US))


def _size(count_bytes: int) -> str:
    return f"{count_bytes / KIB:.0f}KiB" if count_bytes >= 10 * KIB else f"{count_bytes}B"


def _parameters(channel: str) -> str:
    """A channel without what is the same for all."""
    return "|".join(part for part in channel.split("|")[1:] if part)
