"""The fault rules that a seed chooses: a sound driver's streams stay sound whatever they do.

    drop duplicate hold swap displace     of everything
    corrupt      version, ids: the frame is refused or nobody's; payload: it arrives as it is
    truncate     refused, whatever is left
    inject       other sessions, stale, far ahead, misaligned, across a term's end: all refused;
                 NAKs for what lies behind: answered or not, nobody is harmed
    readdress    what the sender says comes from another port, and answers find their way back

Not chosen is damage that no driver could tell from the truth: a flipped bit of a term offset, a
forged status message. Refuses to know anything else of a trial.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.scenario.resolved.case import LINK_NAMES
from windtunnel.harness.scenario.resolved.fault_case import (
    CountCase,
    Ending,
    FaultCase,
    ForgedCase,
    PlaceCase,
    PlaceKind,
    ReachedCase,
    WhenCase,
)
from windtunnel.harness.scenario.schema.act import ACTIONS, Action
from windtunnel.harness.scenario.schema.loss_model import Chain, Kind
from windtunnel.harness.scenario.schema.units import BILLION

US, MS = 1_000, 1_000_000

_DATA_WAY = ("DATA", "PAD", "HEARTBEAT", "SETUP")
_DISTURBABLE = (*_DATA_WAY, "SM", "NAK")
_POSITIONAL = ("DATA", "PAD")
assert set(_DISTURBABLE) <= set(NAMES.values())
_DAMAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("payload", ("DATA",)),
    ("payload", ("DATA",)),
    ("reserved", ("DATA",)),
    ("version", _DISTURBABLE),
    ("session-id", ("DATA", "PAD", "HEARTBEAT", "SM", "NAK")),
    ("stream-id", ("DATA", "PAD", "HEARTBEAT", "SM", "NAK")),
    ("term-id", _POSITIONAL),
)
"""Fields that may be damaged, and of which frames."""
_CUTS = (1, 8, 20, 24, 31, 31, 100)
_EVENTS: tuple[Ending, ...] = ("frames", "advance", "consumed", "repeated")
_FORGED_DATA = (
    ForgedCase(type="DATA", is_same_session=False, payload_length=100),
    ForgedCase(type="DATA", is_same_stream=False, payload_length=100),
    ForgedCase(type="PAD", is_same_session=False),
    ForgedCase(type="DATA", version=1, payload_length=100),
    ForgedCase(type="DATA", term=2, payload_length=64),
    ForgedCase(type="PAD", term=2),
    ForgedCase(type="DATA", term=-1, payload_length=64),
    ForgedCase(type="PAD", term=-1),
    ForgedCase(type="DATA", shift=4, payload_length=64),
    ForgedCase(type="PAD", term_end=-64, length=96),
    ForgedCase(type="DATA", length=4_096, payload_length=64),
)
_FORGED_FEEDBACK = (
    ForgedCase(type="NAK", is_same_session=False, length=1_408),
    ForgedCase(type="NAK", is_same_stream=False, length=1_408),
    ForgedCase(type="NAK", version=1, length=1_408),
    ForgedCase(type="NAK", advance=-4_096, length=4_096),
    ForgedCase(type="SM", is_same_session=False, window_bytes=1 << 16),
    ForgedCase(type="SM", is_same_stream=False, window_bytes=1 << 16),
    ForgedCase(type="SM", version=1, window_bytes=1 << 16),
)


def choose_fault(chance: random.Random, index: int, streams: int) -> FaultCase:
    """One rule; `streams` is how many there are."""
    action = chance.choice(ACTIONS)
    made = FaultCase(
        id=f"f{index}",
        links=tuple(chance.choice((LINK_NAMES, LINK_NAMES[:1], LINK_NAMES[1:]))),
        frame_types=_types(chance, action),
        action=action,
        share_ppb=_share(chance, action),
    )
    changes = _details(chance, action, made, index)
    made = made.model_copy(update=changes)
    if action != "readdress" and chance.random() < 0.25:
        made = made.model_copy(update=_chain(chance))
    narrow: dict[str, object] = {}
    if set(made.frame_types) <= set(_POSITIONAL):
        if chance.random() < 0.2:
            first = chance.randint(1, 3)
            narrow["attempt"] = CountCase(first=first, last=first + chance.randint(0, 3))
        if chance.random() < 0.2:
            narrow["place"] = _place(chance)
    if chance.random() < 0.2:
        narrow["when"] = _when(chance, streams)
    return made.model_copy(update=narrow)


def spread(chance: random.Random, low: int, high: int) -> int:
    """A whole number, every doubling equally likely."""
    return min(high, max(low, round(low * math.pow(high / low, chance.random()))))


def fault_text(fault: FaultCase) -> str:
    """A rule in as few words as possible."""
    much = f"{fault.share_ppb / 1e7:.4g}%"
    if fault.chance != "independent":
        parts = "/".join(f"{part / 1e7:.3g}" for part in fault.chance_ppb)
        much = f"{much} in {fault.chance} {parts}"
    words = [fault.action, much, "+".join(fault.frame_types), "+".join(fault.links)]
    if fault.hold_ns:
        words.append(f"{fault.hold_ns / US:g}us")
    return f"({' '.join(words)}{_selected(fault)})"


def _types(chance: random.Random, action: Action) -> tuple[str, ...]:
    if action == "readdress":
        return _DATA_WAY
    types: Sequence[str] = _POSITIONAL if action in ("swap", "displace") else _DISTURBABLE
    return tuple(each for each in types if chance.random() < 0.4) or (chance.choice(types),)


def _share(chance: random.Random, action: Action) -> int:
    if action == "readdress":
        return BILLION
    if action == "inject":  # Each stroke is up to three frames more: no flood of a socket buffer.
        return spread(chance, BILLION // 10_000, BILLION // 20)
    share_ppb = spread(chance, BILLION // 10_000, BILLION * 3 // 10)
    return BILLION if chance.random() < 0.03 else share_ppb


def _details(
    chance: random.Random, action: Action, made: FaultCase, index: int
) -> dict[str, object]:
    """What a rule needs beside its frames and its share."""
    found: dict[str, object] = {}
    if action == "displace":
        found = {"ending": "frames", "ending_value": chance.randint(2, 20)}
        found["hold_ns"] = spread(chance, 10 * US, 50 * MS)
    elif action == "hold":
        found = _lateness(chance)
    elif action == "duplicate":
        found = _lateness(chance) if chance.random() < 0.3 else {}
        found["copies"] = chance.choice((1, 1, 3))
    elif action == "corrupt":
        field, types = chance.choice(_DAMAGES)
        picked = tuple(each for each in made.frame_types if each in types)
        found = {"field": field, "bits": chance.randint(1, 3), "frame_types": picked or types}
    elif action == "truncate":
        found["cut_to_bytes"] = chance.choice(_CUTS)
    elif action == "inject":
        is_forward = made.frame_types[0] not in ("SM", "NAK")
        pool = _FORGED_DATA if is_forward else _FORGED_FEEDBACK
        carriers = ("DATA", "PAD") if is_forward else ("SM", "NAK")
        picked = tuple(each for each in made.frame_types if each in carriers)
        forged = tuple(chance.choice(pool) for _ in range(chance.randint(1, 3)))
        found = {"forged": forged, "frame_types": picked or carriers[:1]}
    elif action == "readdress":
        found["source_port"] = 40_001 + index
    return found


def _lateness(chance: random.Random) -> dict[str, object]:
    """Until when frames are kept; only those with a place in the stream can wait for an event."""
    found: dict[str, object] = {"hold_ns": spread(chance, 10 * US, 50 * MS)}
    if chance.random() < 0.5:
        ending = chance.choice(_EVENTS)
        value = {"frames": chance.randint(1, 20), "advance": spread(chance, 64, 1 << 16)}
        found |= {"ending": ending, "ending_value": value.get(ending, 0)}
        found["frame_types"] = chance.choice((("DATA",), _POSITIONAL))
    return found


def _chain(chance: random.Random) -> dict[str, object]:
    """Strokes that cluster."""
    kind: Kind = chance.choice(("two states", "four states"))
    begin = spread(chance, BILLION // 2_000, BILLION // 20)
    end = spread(chance, BILLION // 100, BILLION // 2)
    parts: tuple[int, ...] = (begin, end, chance.choice((BILLION, BILLION // 2)), 0)
    if kind == "four states":
        parts = (begin, end, BILLION // 10, BILLION // 5, BILLION // 1_000)
    return {
        "chance": kind,
        "chance_ppb": parts,
        "share_ppb": round(Chain(kind, parts).share * BILLION),
    }


def _place(chance: random.Random) -> PlaceCase:
    kinds: tuple[PlaceKind, ...] = ("range", "term-start", "term-end", "stream-end")
    kind = chance.choice(kinds)
    if kind != "range":
        return PlaceCase(kind=kind)
    start, length = spread(chance, 1, 1 << 20), spread(chance, 1, 1 << 16)
    return PlaceCase(kind="range", start=start, length=length, every=chance.choice((0, 1 << 17)))


def _when(chance: random.Random, streams: int) -> WhenCase:
    """A pulse, one that comes again, or from one point of a stream to another."""
    if chance.random() < 0.3:
        first = spread(chance, 1, 1 << 20)
        return WhenCase(
            reached=ReachedCase(ordinal=chance.randrange(streams), position=first),
            until=ReachedCase(
                ordinal=chance.randrange(streams), position=first + spread(chance, 1 << 10, 1 << 20)
            ),
        )
    for_ns = spread(chance, MS, 50 * MS)
    return WhenCase(
        after_ns=spread(chance, US, 50 * MS),
        for_ns=for_ns,
        every_ns=chance.choice((0, 3 * for_ns)),
    )


def _selected(fault: FaultCase) -> str:
    """What a rule does beyond its action's name, and what narrows it down."""
    words = []
    if fault.copies != 1:
        words.append(f"x{fault.copies}")
    if fault.ending != "time":
        words.append(f"until {fault.ending} {fault.ending_value}")
    if fault.field:
        words.append(f"{fault.bits} bits of {fault.field}")
    if fault.cut_to_bytes:
        words.append(f"to {fault.cut_to_bytes}B")
    if fault.source_port:
        words.append(f"port {fault.source_port}")
    words += [_forged_text(each) for each in fault.forged]
    if fault.attempt != CountCase():
        words.append(f"attempt {fault.attempt.first}..{fault.attempt.last}")
    if fault.place != PlaceCase():
        place = fault.place
        span = f" {place.start}+{place.length}/{place.every}" if place.kind == "range" else ""
        words.append(f"{place.kind}{span}")
    if fault.when is not None:
        words.append(_when_text(fault.when))
    return "".join(f" {each}" for each in words)


def _forged_text(forged: ForgedCase) -> str:
    """A forged frame by what it says otherwise than the frame before."""
    default = ForgedCase(type=forged.type)
    said = forged.model_dump()
    changes = {key: value for key, value in said.items() if value != getattr(default, key)}
    return f"{forged.type}{{{','.join(f'{key}={value}' for key, value in changes.items())}}}"


def _when_text(when: WhenCase) -> str:
    if when.reached is not None and when.until is not None:
        return (
            f"from stream {when.reached.ordinal} at {when.reached.position} "
            f"to {when.until.ordinal} at {when.until.position}"
        )
    return (
        f"after {when.after_ns / US:g}us for {when.for_ns / US:g}us every {when.every_ns / US:g}us"
    )
