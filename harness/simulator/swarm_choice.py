"""What a seed chooses: streams, their configuration and traffic, the wire, the faults.

    seed --> 1 to 3 streams, either way: kind, term, mtu, window, reliable or not, NAK delay, start,
             message lengths
         --> the wire's delay, the agents' pace
         --> up to 5 fault rules: link, frame types, action, share, delay
         --> when the weather heals: how much of each stream is left for then

Everything is printed in one line before anything happens, and is a function of the seed alone: any
configuration that is chosen here must work. Refuses to know how a trial is run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from harness.artifact.frame_class import NAMES
from harness.scenario.act import Action
from harness.scenario.case import (
    LINK_NAMES,
    Case,
    HostCase,
    Payload,
    TrafficCase,
)
from harness.scenario.fault_case import CountCase, FaultCase, PlaceCase, PlaceKind, WhenCase
from harness.scenario.units import BILLION

FRAMES_MIN, FRAMES_MAX = 200, 10_000
FAULTS_MAX = 5
BYTES_MAX = 14 << 20
"""Of one stream: what 10,000 frames of an Ethernet carry."""
ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 24_325
KIB = 1 << 10
US, MS = 1_000, 1_000_000

_TERMS = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1_024 * KIB)
_MTUS = (256, 576, 1_408, 1_408, 1_408, 4_096, 8_192)
_NAK_DELAYS = ("", "", "1us", "10us", "100us", "1ms")
_EDGES = (-(1 << 31), (1 << 31) - 1, (1 << 31) - 2, -1, 0)
_HEADER, _ALIGNMENT = 32, 32
_DISTURBABLE = ("DATA", "PAD", "HEARTBEAT", "SETUP", "SM", "NAK")
_SWAPPABLE = ("DATA", "PAD")
ACTIONS: tuple[Action, ...] = ("drop", "duplicate", "hold", "swap", "displace")
"""Those after which every stream must still be sound; damage and forgery have laws of their own."""
assert set(_DISTURBABLE) <= set(NAMES.values())


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
        faults = " ".join(
            f"({each.action} {each.share_ppb / 1e7:.4g}% {'+'.join(each.frame_types)} "
            f"{'+'.join(each.links)}{f' {each.hold_ns / US:g}us' if each.hold_ns else ''}"
            f"{_selected(each)})"
            for each in self.case.faults
        )
        return (
            f"frames~{self.frames} delay={self.delay_ns / US:g}us turn={self.turn_ns / US:g}us "
            f"healed={self.healed_share:.0%} {streams} {faults or 'no faults'}"
        )


def choose(seed: int, *, frames: int | None = None) -> Choice:
    """The trial of a seed; `frames` in place of the number that it would choose."""
    chance = random.Random(f"swarm {seed}")
    wanted = _spread(chance, FRAMES_MIN, FRAMES_MAX)
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
        faults=tuple(_fault(chance, index) for index in range(chance.randint(0, FAULTS_MAX))),
        expect=(),
        wall_ns=60_000 * MS,
    )
    turn_ns = chance.choice((1, 2, 5, 10, 20)) * US
    return Choice(
        case=case,
        delay_ns=_spread(chance, US, 2_000 * US),
        turn_ns=turn_ns,
        idle_max_ns=turn_ns * chance.choice((1, 4, 20, 50)),
        bursts=tuple(chance.choice((1, 4, 32, 1_000)) for _ in traffic),
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


def _fault(chance: random.Random, index: int) -> FaultCase:
    action = chance.choice(ACTIONS)
    is_moved = action in ("swap", "displace")
    types: Sequence[str] = _SWAPPABLE if is_moved else _DISTURBABLE
    picked = [each for each in types if chance.random() < 0.4] or [chance.choice(types)]
    links = chance.choice((LINK_NAMES, LINK_NAMES[:1], LINK_NAMES[1:]))
    share_ppb = _spread(chance, BILLION // 10_000, BILLION * 3 // 10)
    if chance.random() < 0.03:
        share_ppb = BILLION
    hold_ns = _spread(chance, 10 * US, 50 * MS) if action in ("hold", "displace") else 0
    positional = set(picked) <= set(_SWAPPABLE)
    return FaultCase(
        id=f"f{index}",
        links=tuple(links),
        frame_types=tuple(picked),
        action=action,
        share_ppb=share_ppb,
        hold_ns=hold_ns,
        ending="frames" if action == "displace" else "time",
        ending_value=chance.randint(2, 20) if action == "displace" else 0,
        copies=chance.choice((1, 1, 3)) if action == "duplicate" else 1,
        attempt=_counted(chance, 3) if positional and chance.random() < 0.2 else CountCase(),
        place=_place(chance) if positional and chance.random() < 0.2 else PlaceCase(),
        when=_when(chance) if chance.random() < 0.2 else None,
    )


def _counted(chance: random.Random, most: int) -> CountCase:
    first = chance.randint(1, most)
    return CountCase(first=first, last=first + chance.randint(0, most))


def _place(chance: random.Random) -> PlaceCase:
    kinds: tuple[PlaceKind, ...] = ("range", "term-start", "term-end", "stream-end")
    kind = chance.choice(kinds)
    if kind != "range":
        return PlaceCase(kind=kind)
    start, length = _spread(chance, 1, 1 << 20), _spread(chance, 1, 1 << 16)
    return PlaceCase(kind="range", start=start, length=length, every=chance.choice((0, 1 << 17)))


def _when(chance: random.Random) -> WhenCase:
    """A pulse, or one that comes again."""
    for_ns = _spread(chance, MS, 50 * MS)
    return WhenCase(
        after_ns=_spread(chance, US, 50 * MS),
        for_ns=for_ns,
        every_ns=chance.choice((0, 3 * for_ns)),
    )


def _spread(chance: random.Random, low: int, high: int) -> int:
    """A whole number, every doubling equally likely."""
    return min(high, max(low, round(low * math.pow(high / low, chance.random()))))


def _selected(fault: FaultCase) -> str:
    """What narrows a rule down, in as few words as possible."""
    words = []
    if fault.copies != 1:
        words.append(f"x{fault.copies}")
    if fault.ending == "frames":
        words.append(f"by {fault.ending_value}")
    if fault.attempt != CountCase():
        words.append(f"attempt {fault.attempt.first}..{fault.attempt.last}")
    if fault.place != PlaceCase():
        place = fault.place
        span = f" {place.start}+{place.length}/{place.every}" if place.kind == "range" else ""
        words.append(f"{place.kind}{span}")
    if fault.when is not None:
        when = fault.when
        words.append(
            f"after {when.after_ns / US:g}us for {when.for_ns / US:g}us every "
            f"{when.every_ns / US:g}us"
        )
    return "".join(f" {each}" for each in words)


def _size(count_bytes: int) -> str:
    return f"{count_bytes / KIB:.0f}KiB" if count_bytes >= 10 * KIB else f"{count_bytes}B"


def _parameters(channel: str) -> str:
    """A channel without what is the same for all."""
    return "|".join(part for part in channel.split("|")[1:] if part)
