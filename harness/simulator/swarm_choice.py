"""What a seed chooses: streams, their configuration and traffic, the wire, the faults.

    seed --> 1 to 3 streams, either way: kind, term, mtu, window, reliable or not, NAK delay, start,
             congestion control, message lengths, a reader that takes its time
         --> the wire's delay, the agents' pace and how long they sleep
         --> up to 5 fault rules, see `swarm_faults`
         --> when the weather heals: how much of each stream is left for then

Everything is printed in one line before anything happens, and is a function of the seed alone: any
configuration that is chosen here must work. Refuses to know how a trial is run.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from harness.scenario.case import Case, HostCase, Payload, TrafficCase
from harness.simulator.swarm_faults import MS, US, choose_fault, fault_text, spread

FRAMES_MIN, FRAMES_MAX = 200, 10_000
FAULTS_MAX = 5
BYTES_MAX = 14 << 20
"""Of one stream: what 10,000 frames of an Ethernet carry."""
ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 24_325
KIB = 1 << 10

_TERMS = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1_024 * KIB)
_MTUS = (256, 576, 1_408, 1_408, 1_408, 4_096, 8_192)
_NAK_DELAYS = ("", "", "1us", "10us", "100us", "1ms")
_EDGES = (-(1 << 31), (1 << 31) - 1, (1 << 31) - 2, -1, 0)
_HEADER, _ALIGNMENT = 32, 32
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
            f"[{each.from_host}->{each.to_host} {each.publication} {_size(each.total_bytes)} of "
            f"{each.shortest_bytes}..{each.longest_bytes} {_parameters(each.channel)} / "
            f"{_parameters(each.receive) or 'reliable'}]"
            for each in self.case.traffic
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
    traffic = tuple(_stream(chance, index, max(20, wanted // count)) for index in range(count))
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
        healed_share=chance.choice((0.02, 0.1, 0.3)),
        safety_ns=chance.choice((200, 500, 1_000)) * MS,
        frames=wanted,
    )


def _stream(chance: random.Random, index: int, frames: int) -> TrafficCase:
    term_length = chance.choice(_TERMS)
    mtu = chance.choice([each for each in _MTUS if each <= term_length // 8])
    window = min(term_length // 2, chance.choice((8, 16, 32, 128)) * KIB)
    window = max(window, 2 * mtu)
    shortest, longest = _lengths(chance, mtu, term_length)
    initial = chance.choice((*_EDGES, chance.randint(-(1 << 31), (1 << 31) - 1)))
    terms, offset = chance.choice((0, 0, 1, 5)), 0
    if chance.random() < 0.5:
        offset = chance.randrange(0, term_length, _ALIGNMENT)
    term_id = (initial + terms + (1 << 31)) % (1 << 32) - (1 << 31)
    start = f"init-term-id={initial}|term-id={term_id}|term-offset={offset}"
    reliable = chance.random() < 0.65
    forward = chance.random() < 0.8
    hosts, address = (("a", "b"), ADDRESSES[1]) if forward else (("b", "a"), ADDRESSES[0])
    endpoint = f"endpoint={address}:{PORT + index}"
    receive = [f"aeron:udp?{endpoint}", f"rcv-wnd={window}"]
    nak_delay = chance.choice(_NAK_DELAYS)
    if chance.random() < 0.1:
        receive.append("cc=cubic")
    if not reliable:
        receive.append("reliable=false")
    elif nak_delay:
        receive.append(f"nak-delay={nak_delay}")
    framed = _framed(shortest, longest, mtu)
    return TrafficCase(
        id=f"s{index}",
        ordinal=index,
        stream_id=1001 + index,
        from_host=hosts[0],
        to_host=hosts[1],
        publication="exclusive" if chance.random() < 0.5 else "concurrent",
        channel=f"aeron:udp?{endpoint}|term-length={term_length}|mtu={mtu}|{start}",
        receive="|".join(receive),
        port=PORT + index,
        reliable=reliable,
        term_length=term_length,
        mtu=mtu,
        initial_term_id=initial,
        initial_position=terms * term_length + offset,
        receiver_window_bytes=window,
        total_bytes=max(1, min(BYTES_MAX, int(frames * framed))),
        shortest_bytes=shortest,
        longest_bytes=longest,
    )


def _lengths(chance: random.Random, mtu: int, term_length: int) -> tuple[int, int]:
    """Shortest and longest message: tiny, about a frame, or as long as the term allows."""
    most = term_length // 8
    payload = mtu - _HEADER
    return chance.choice(
        (
            (1, min(64, most)),
            (1, most),
            (max(1, payload - 40), min(payload + 40, most)),
            (min(payload, most), min(payload, most)),
            (1, min(payload, most)),
        )
    )


def _framed(shortest: int, longest: int, mtu: int) -> float:
    """About how many bytes of messages one frame carries."""
    middle = math.sqrt(shortest * longest)
    return min(middle, mtu - _HEADER)


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
