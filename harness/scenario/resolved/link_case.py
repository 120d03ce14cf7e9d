"""The links of a case, with the codes and names of their directions.

    link 0   code 0  first -> second      with one link, the names are a->b and b->a
             code 1  second -> first
    link 1   code 2, code 3               with several links, names contain hosts: pub->sub2

Rules, pseudorandom draws, decisions and counters refer to a direction by its code. The opposite
direction's code differs in the lowest bit.
"""

from collections.abc import Sequence
from typing import Literal

from windtunnel.harness.scenario.schema.part import Part
from windtunnel.harness.scenario.schema.table import Name

Backend = Literal["relay", "netem"]
LINK_NAMES: tuple[str, str] = ("a->b", "b->a")
"""Names of the directions of a case's only link: `a` is the first host, `b` the second."""
LINKS_MAX = 31
"""Maximum number of links: 32 hosts around one of them, or all pairs of eight. A rule stores the
directions of links as a bit set in a signed 64-bit integer, which has room for 31 links.
"""
CHANGES_MAX = 2_000
"""Maximum number of changes of link directions in a run."""


class LinkCase(Part):
    """A link in a resolved case: its two hosts, and the backend (relay or netem) for its
    impairments.
    """

    between: tuple[Name, Name]
    backend: Backend = "relay"


def link_names(links: Sequence[LinkCase]) -> tuple[str, ...]:
    """Return the names of the link directions in the order of their codes. An empty `links` stands
    for a single link.
    """
    if not links:
        return LINK_NAMES
    return tuple(f"{sender}->{receiver}" for sender, receiver in directions(links))


def directions(links: Sequence[LinkCase]) -> tuple[tuple[str, str], ...]:
    """Return the sending and the receiving host of each link direction, in the order of the
    directions' codes.
    """
    found: list[tuple[str, str]] = []
    for link in links:
        found += [link.between, (link.between[1], link.between[0])]
    return tuple(found)
