"""The way a stream takes from host to host, one of those that Aeron knows, as a seed chooses it.

    unicast    a ----------------> endpoint of b
    multicast  a --> group --> b
    dynamic    a <-- control <-- b says where it listens
    manual     a adds the endpoint of b to its publication
    collected  b adds its endpoint to its subscription
    doubled    a adds two endpoints, b both of them to one subscription: all comes twice

Refuses to know what a stream carries and what befalls it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

CONTROL_OFFSET = 100
"""From a stream's port to another of its own."""

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
class Way:
    """Where a stream goes, as both ends have it in their channels."""

    name: str
    publish: str
    """The publication's channel, to which what is sent and how is added."""
    receive: str
    """The subscription's."""
    destinations: tuple[str, ...] = ()
    """What the publisher adds."""
    sources: tuple[str, ...] = ()
    """What the subscriber adds."""


def choose_way(chance: random.Random, near: str, far: str, port: int) -> Way:
    """The way from one address to another; the ports from `port` on are the stream's own."""
    name = chance.choices(tuple(_KINDS), tuple(_KINDS.values()))[0]
    group = "" if name == "unicast" else chance.choice(_FLOW_CONTROLS)
    there = f"aeron:udp?endpoint={far}:{port}"
    also_there = f"aeron:udp?endpoint={far}:{port + CONTROL_OFFSET}"
    control = f"control={near}:{port + CONTROL_OFFSET}"
    many = f"aeron:udp?control-mode=manual{group}"
    collected = "aeron:udp?control-mode=manual"
    if name == "multicast":
        group_at = f"aeron:udp?endpoint={_GROUP}:{port}"
        return Way(name, f"{group_at}|interface={near}{group}", f"{group_at}|interface={far}")
    if name == "dynamic":
        return Way(name, f"aeron:udp?{control}|control-mode=dynamic{group}", f"{there}|{control}")
    if name == "manual":
        return Way(name, many, there, destinations=(there,))
    if name == "collected":
        return Way(name, there, collected, sources=(there,))
    if name == "doubled":
        both = (there, also_there)
        return Way(name, many, collected, destinations=both, sources=both)
    return Way(name, there, there)
