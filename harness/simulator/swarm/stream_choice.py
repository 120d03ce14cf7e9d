"""Chooses one stream of a swarm trial from a seed: its network path, configuration and messages.

    path         unicast, multicast, several destinations, see `stream_path`
    publication  term, mtu, kind, start position
    receiver     window, reliable or not, NAK delay, congestion control
    messages     tiny, about a frame, or as long as the term allows

Every configuration that can be chosen here must work.
"""

from __future__ import annotations

import math
import random

from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.swarm.stream_path import choose_path

ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 24_325
KIB = 1 << 10
BYTES_MAX = 14 << 20
"""Maximum size of one stream: the payload of 10,000 Ethernet frames."""

_TERMS = (64 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 1_024 * KIB)
_MTUS = (256, 576, 1_408, 1_408, 1_408, 4_096, 8_192)
_NAK_DELAYS = ("", "", "1us", "10us", "100us", "1ms")
_EDGES = (-(1 << 31), (1 << 31) - 1, (1 << 31) - 2, -1, 0)
_HEADER, _ALIGNMENT = 32, 32


def choose_stream(rng: random.Random, index: int, frames: int) -> tuple[TrafficCase, str]:
    """Choose a stream with about `frames` frames. Returns the stream and the name of its network
    path, such as `multicast`.
    """
    term_length = rng.choice(_TERMS)
    mtu = rng.choice([each for each in _MTUS if each <= term_length // 8])
    window = min(term_length // 2, rng.choice((8, 16, 32, 128)) * KIB)
    window = max(window, 2 * mtu)
    shortest, longest = _lengths(rng, mtu, term_length)
    initial = rng.choice((*_EDGES, rng.randint(-(1 << 31), (1 << 31) - 1)))
    terms, offset = rng.choice((0, 0, 1, 5)), 0
    if rng.random() < 0.5:
        offset = rng.randrange(0, term_length, _ALIGNMENT)
    term_id = (initial + terms + (1 << 31)) % (1 << 32) - (1 << 31)
    start = f"init-term-id={initial}|term-id={term_id}|term-offset={offset}"
    reliable = rng.random() < 0.65
    forward = rng.random() < 0.8
    hosts = ("a", "b") if forward else ("b", "a")
    near, far = ADDRESSES if forward else ADDRESSES[::-1]
    path = choose_path(rng, near, far, PORT + index)
    receive = [path.receive, f"rcv-wnd={window}"]
    nak_delay = rng.choice(_NAK_DELAYS)
    if rng.random() < 0.1:
        receive.append("cc=cubic")
    if not reliable:
        receive.append("reliable=false")
    elif nak_delay:
        receive.append(f"nak-delay={nak_delay}")
    framed = _framed(shortest, longest, mtu)
    fault = TrafficCase(
        id=f"s{index}",
        ordinal=index,
        stream_id=1001 + index,
        from_host=hosts[0],
        to_host=hosts[1],
        publication="exclusive" if rng.random() < 0.5 else "concurrent",
        channel=f"{path.publish}|term-length={term_length}|mtu={mtu}|{start}",
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
        destinations=path.destinations,
        sources=tuple((hosts[1], each) for each in path.sources),
    )
    return fault, path.name


def _lengths(rng: random.Random, mtu: int, term_length: int) -> tuple[int, int]:
    """Choose the shortest and longest message length: tiny, about one frame, or up to the term's
    limit.
    """
    most = term_length // 8
    payload = mtu - _HEADER
    return rng.choice(
        (
            (1, min(64, most)),
            (1, most),
            (max(1, payload - 40), min(payload + 40, most)),
            (min(payload, most), min(payload, most)),
            (1, min(payload, most)),
        )
    )


def _framed(shortest: int, longest: int, mtu: int) -> float:
    """Estimate how many message bytes one frame carries."""
    middle = math.sqrt(shortest * longest)
    return min(middle, mtu - _HEADER)
