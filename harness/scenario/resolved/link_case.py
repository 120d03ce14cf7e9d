"""The links of a case, and the codes of their directions.

    link 0   code 0  first -> second      one link: they are called a->b and b->a
             code 1  second -> first
    link 1   code 2, code 3               several: by the names of their hosts, as in pub->sub2

A code stands for a direction in rules, draws, decisions and accounts; the opposite direction is the
code with its last bit turned. Refuses to know which packets take which way.
"""

from collections.abc import Sequence
from typing import Literal

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Name

Backend = Literal["relay", "netem"]
LINK_NAMES: tuple[str, str] = ("a->b", "b->a")
"""Directions of the only link in ledger and decision log: `a` is its first host, `b` its second."""
LINKS_MAX = 28
"""Eight hosts, each joined to each; a rule's links are bits of one number."""


class LinkCase(Part):
    """One of several links: its two ends, and who delivers its weather."""

    between: tuple[Name, Name]
    backend: Backend = "relay"


def link_names(links: Sequence[LinkCase]) -> tuple[str, ...]:
    """Names of the directions by code; without links there is one, between the first two hosts."""
    if not links:
        return LINK_NAMES
    return tuple(f"{sender}->{receiver}" for sender, receiver in directions(links))


def directions(links: Sequence[LinkCase]) -> tuple[tuple[str, str], ...]:
    """Sending and receiving host of each direction, by code."""
    found: list[tuple[str, str]] = []
    for link in links:
        found += [link.between, (link.between[1], link.between[0])]
    return tuple(found)
