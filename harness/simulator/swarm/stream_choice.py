"""What a seed chooses of one stream: its way, its configuration, its messages.

    way          unicast, multicast, several destinations, see `swarm_way`
    publication  term, mtu, kind, where it starts
    receiver     window, reliable or not, NAK delay, congestion control
    messages     tiny, about a frame, or as long as the term allows

Any configuration that is chosen here must work.
"""

from __future__ import annotations

import math
import random

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.swarm.stream_path import choose_way

ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 24_325
KIB = 1 << 10
BYTES_MAX = 14 << 20
"""Of one stream: what 10,000 frames of an Ethernet carry."""

_TERMS = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1_024 * KIB)
_MTUS = (256, 576, 1_408, 1_408, 1_408, 4_096, 8_192)
_NAK_DELAYS = ("", "", "1us", "10us", "100us", "1ms")
_EDGES = (-(1 << 31), (1 << 31) - 1, (1 << 31) - 2, -1, 0)
_HEADER, _ALIGNMENT = 32, 32


def choose_stream(chance: random.Random, index: int, frames: int) -> tuple[TrafficCase, str]:
    """The stream with that place in the case, which has about so many frames; and its way."""
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
    hosts = ("a", "b") if forward else ("b", "a")
    near, far = ADDRESSES if forward else ADDRESSES[::-1]
    way = choose_way(chance, near, far, PORT + index)
    receive = [way.receive, f"rcv-wnd={window}"]
    nak_delay = chance.choice(_NAK_DELAYS)
    if chance.random() < 0.1:
        receive.append("cc=cubic")
    if not reliable:
        receive.append("reliable=false")
    elif nak_delay:
        receive.append(f"nak-delay={nak_delay}")
    framed = _framed(shortest, longest, mtu)
    made = TrafficCase(
        id=f"s{index}",
        ordinal=index,
        stream_id=1001 + index,
        from_host=hosts[0],
        to_host=hosts[1],
        publication="exclusive" if chance.random() < 0.5 else "concurrent",
        channel=f"{way.publish}|term-length={term_length}|mtu={mtu}|{start}",
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
        destinations=way.destinations,
        sources=tuple((hosts[1], each) for each in way.sources),
    )
    return made, way.name


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
