"""Chooses from a seed how a stream gets from one host to the other.

unicast    a ----------------> endpoint of b
multicast  a --> group --> b
dynamic    a <-- control <-- b registers its endpoint with a
manual     a adds the endpoint of b to its publication
collected  b adds its endpoint to its subscription
doubled    a adds two endpoints of b, and b adds both to one subscription: frames arrive twice
"""

from __future__ import annotations

import random
from dataclasses import dataclass

CONTROL_OFFSET = 100
"""Offset from a stream's first port to its second port."""

_KINDS = {
    "unicast": 10,
    "multicast": 1,
    "dynamic": 1,
    "manual": 1,
    "collected": 1,
    "doubled": 1,
}
_GROUP = "224.20.30.39"
_FLOW_CONTROLS = ("", "|fc=max", "|fc=min")


@dataclass(frozen=True)
class StreamPath:
    """A stream's channels and destinations at both ends."""

    name: str
    publish: str
    """The publication channel without the stream's own parameters."""
    receive: str
    """The subscription channel without the stream's own parameters."""
    destinations: tuple[str, ...] = ()
    """Destinations that the publisher adds to its publication."""
    sources: tuple[str, ...] = ()
    """Destinations that the subscriber adds to its subscription."""


def choose_path(rng: random.Random, near: str, far: str, port: int) -> StreamPath:
    """Choose how a stream gets from one address to another: unicast, multicast or
    multi-destination. The stream uses `port`, and `port + CONTROL_OFFSET` if it needs two ports.
    """
    name = rng.choices(tuple(_KINDS), tuple(_KINDS.values()))[0]
    group = "" if name == "unicast" else rng.choice(_FLOW_CONTROLS)
    endpoint = f"aeron:udp?endpoint={far}:{port}"
    second_endpoint = f"aeron:udp?endpoint={far}:{port + CONTROL_OFFSET}"
    control = f"control={near}:{port + CONTROL_OFFSET}"
    many = f"aeron:udp?control-mode=manual{group}"
    collected = "aeron:udp?control-mode=manual"
    if name == "multicast":
        group_at = f"aeron:udp?endpoint={_GROUP}:{port}"
        return StreamPath(
            name, f"{group_at}|interface={near}{group}", f"{group_at}|interface={far}"
        )
    if name == "dynamic":
        return StreamPath(
            name, f"aeron:udp?{control}|control-mode=dynamic{group}", f"{endpoint}|{control}"
        )
    if name == "manual":
        return StreamPath(name, many, endpoint, destinations=(endpoint,))
    if name == "collected":
        return StreamPath(name, endpoint, collected, sources=(endpoint,))
    if name == "doubled":
        both = (endpoint, second_endpoint)
        return StreamPath(name, many, collected, destinations=both, sources=both)
    return StreamPath(name, endpoint, endpoint)
