"""Chooses the fault rules of a swarm trial, which is a randomized simulation. A correct driver must
survive all of them.

    drop duplicate hold swap displace     any frame
    corrupt      version, ids: rejected or matches no stream; payload: delivered as it is
    truncate     rejected, whatever length is left
    inject       other sessions, stale, far ahead, misaligned, across a term's end: all rejected;
                 NAKs for earlier positions: harmless whether answered or not
    readdress    the sender's datagrams come from another port, and replies still reach the sender

Excludes mutations that no driver could detect, such as a flipped bit in a term offset or a forged
status message.
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
from windtunnel.harness.scenario.schema.loss_model import ChainKind, MarkovChain
from windtunnel.harness.scenario.schema.units import BILLION

US, MS = 1_000, 1_000_000

_FROM_SENDER = ("DATA", "PAD", "HEARTBEAT", "SETUP")
_DISTURBABLE = (*_FROM_SENDER, "SM", "NAK")
_POSITIONAL = ("DATA", "PAD")
assert set(_DISTURBABLE) <= set(NAMES.values())
_MUTATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("payload", ("DATA",)),
    ("payload", ("DATA",)),
    ("reserved", ("DATA",)),
    ("version", _DISTURBABLE),
    ("session-id", ("DATA", "PAD", "HEARTBEAT", "SM", "NAK")),
    ("stream-id", ("DATA", "PAD", "HEARTBEAT", "SM", "NAK")),
    ("term-id", _POSITIONAL),
)
"""Frame fields that may be corrupted, each with the frame types to which this applies."""
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


def choose_fault(rng: random.Random, index: int, streams: int) -> FaultCase:
    """Choose one fault rule for a trial with the given number of streams."""
    action = rng.choice(ACTIONS)
    fault = FaultCase(
        id=f"f{index}",
        links=tuple(rng.choice((LINK_NAMES, LINK_NAMES[:1], LINK_NAMES[1:]))),
        frame_types=_types(rng, action),
        action=action,
        share_ppb=_share(rng, action),
    )
    changes = _details(rng, action, fault, index)
    fault = fault.model_copy(update=changes)
    if action != "readdress" and rng.random() < 0.25:
        fault = fault.model_copy(update=_chain(rng))
    narrow: dict[str, object] = {}
    if set(fault.frame_types) <= set(_POSITIONAL):
        if rng.random() < 0.2:
            first = rng.randint(1, 3)
            narrow["attempt"] = CountCase(first=first, last=first + rng.randint(0, 3))
        if rng.random() < 0.2:
            narrow["place"] = _place(rng)
    if rng.random() < 0.2:
        narrow["when"] = _when(rng, streams)
    return fault.model_copy(update=narrow)


def spread(rng: random.Random, low: int, high: int) -> int:
    """Choose an integer log-uniformly between `low` and `high`."""
    return min(high, max(low, round(low * math.pow(high / low, rng.random()))))


def fault_text(fault: FaultCase) -> str:
    """Format a fault rule as a short text for the description of a swarm trial."""
    much = f"{fault.share_ppb / 1e7:.4g}%"
    if fault.chance != "independent":
        parts = "/".join(f"{part / 1e7:.3g}" for part in fault.chance_ppb)
        much = f"{much} in {fault.chance} {parts}"
    words = [fault.action, much, "+".join(fault.frame_types), "+".join(fault.links)]
    if fault.hold_ns:
        words.append(f"{fault.hold_ns / US:g}us")
    return f"({' '.join(words)}{_conditions_text(fault)})"


def _types(rng: random.Random, action: Action) -> tuple[str, ...]:
    if action == "readdress":
        return _FROM_SENDER
    types: Sequence[str] = _POSITIONAL if action in ("swap", "displace") else _DISTURBABLE
    return tuple(each for each in types if rng.random() < 0.4) or (rng.choice(types),)


def _share(rng: random.Random, action: Action) -> int:
    if action == "readdress":
        return BILLION
    if action == "inject":
        # Each match adds up to three frames, so a high rate would overflow a socket buffer.
        return spread(rng, BILLION // 10_000, BILLION // 20)
    share_ppb = spread(rng, BILLION // 10_000, BILLION * 3 // 10)
    return BILLION if rng.random() < 0.03 else share_ppb


def _details(rng: random.Random, action: Action, fault: FaultCase, index: int) -> dict[str, object]:
    """Choose the parameters that a fault rule's action needs, such as the number of copies."""
    found: dict[str, object] = {}
    if action == "displace":
        found = {"ending": "frames", "ending_value": rng.randint(2, 20)}
        found["hold_ns"] = spread(rng, 10 * US, 50 * MS)
    elif action == "hold":
        found = _hold_details(rng)
    elif action == "duplicate":
        found = _hold_details(rng) if rng.random() < 0.3 else {}
        found["copies"] = rng.choice((1, 1, 3))
    elif action == "corrupt":
        field, types = rng.choice(_MUTATIONS)
        picked = tuple(each for each in fault.frame_types if each in types)
        found = {"field": field, "bits": rng.randint(1, 3), "frame_types": picked or types}
    elif action == "truncate":
        found["cut_to_bytes"] = rng.choice(_CUTS)
    elif action == "inject":
        is_forward = fault.frame_types[0] not in ("SM", "NAK")
        pool = _FORGED_DATA if is_forward else _FORGED_FEEDBACK
        carriers = ("DATA", "PAD") if is_forward else ("SM", "NAK")
        picked = tuple(each for each in fault.frame_types if each in carriers)
        forged = tuple(rng.choice(pool) for _ in range(rng.randint(1, 3)))
        found = {"forged": forged, "frame_types": picked or carriers[:1]}
    elif action == "readdress":
        found["source_port"] = 40_001 + index
    return found


def _hold_details(rng: random.Random) -> dict[str, object]:
    """Choose how long the middlebox holds matching frames, and whether an event can release them.
    Only DATA and PAD frames can wait for an event.
    """
    found: dict[str, object] = {"hold_ns": spread(rng, 10 * US, 50 * MS)}
    if rng.random() < 0.5:
        ending = rng.choice(_EVENTS)
        value = {"frames": rng.randint(1, 20), "advance": spread(rng, 64, 1 << 16)}
        found |= {"ending": ending, "ending_value": value.get(ending, 0)}
        found["frame_types"] = rng.choice((("DATA",), _POSITIONAL))
    return found


def _chain(rng: random.Random) -> dict[str, object]:
    """Choose a Markov chain that makes a fault rule match in bursts."""
    kind: ChainKind = rng.choice(("two states", "four states"))
    begin = spread(rng, BILLION // 2_000, BILLION // 20)
    end = spread(rng, BILLION // 100, BILLION // 2)
    parts: tuple[int, ...] = (begin, end, rng.choice((BILLION, BILLION // 2)), 0)
    if kind == "four states":
        parts = (begin, end, BILLION // 10, BILLION // 5, BILLION // 1_000)
    return {
        "chance": kind,
        "chance_ppb": parts,
        "share_ppb": round(MarkovChain(kind, parts).share * BILLION),
    }


def _place(rng: random.Random) -> PlaceCase:
    kinds: tuple[PlaceKind, ...] = ("range", "term-start", "term-end", "stream-end")
    kind = rng.choice(kinds)
    if kind != "range":
        return PlaceCase(kind=kind)
    start, length = spread(rng, 1, 1 << 20), spread(rng, 1, 1 << 16)
    return PlaceCase(kind="range", start=start, length=length, every=rng.choice((0, 1 << 17)))


def _when(rng: random.Random, streams: int) -> WhenCase:
    """Choose when a fault rule is active: once, periodically, or between two stream positions."""
    if rng.random() < 0.3:
        first = spread(rng, 1, 1 << 20)
        return WhenCase(
            reached=ReachedCase(ordinal=rng.randrange(streams), position=first),
            until=ReachedCase(
                ordinal=rng.randrange(streams), position=first + spread(rng, 1 << 10, 1 << 20)
            ),
        )
    for_ns = spread(rng, MS, 50 * MS)
    return WhenCase(
        after_ns=spread(rng, US, 50 * MS),
        for_ns=for_ns,
        every_ns=rng.choice((0, 3 * for_ns)),
    )


def _conditions_text(fault: FaultCase) -> str:
    """Format a fault rule's parameters and the conditions under which it applies."""
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
    """Format a forged frame by listing the fields that differ from the default."""
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
