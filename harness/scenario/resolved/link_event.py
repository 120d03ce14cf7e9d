"""Events that change links: the impairments that each link direction has while events are active.

    link           {delay: 20ms}
    storm begins   {delay: 20ms, loss: 10%}      each key of an event replaces that of the link
    slow begins    {delay: 90ms, loss: 10%}      events are applied in the order of their beginnings
    storm ends     {delay: 90ms}
    partition      everything is lost            whatever else is active

A direction is affected by a partition if one of its hosts is cut off.
"""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.scenario.schema.units import BILLION

ALL_LOST = LossCase(model="iid", shares_ppb=(BILLION,))
_TOGETHER = (
    ("loss",),
    ("delay_ns", "jitter_ns", "distribution"),
    ("rate_bits_per_s",),
    ("queue_packets",),
    ("duplicate_ppb",),
    ("corrupt_ppb",),
    ("reorder_ppb", "reorder_gap"),
)
"""Values that one key of a scenario file sets. The first one is never 0 if the key is given."""


class LinkStates:
    """The impairments of a run's link directions now, given the events that are active."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._active: list[EventCase] = []

    def begin(self, event: EventCase) -> list[ImpairmentCase]:
        """Begin an event. Returns the new impairments of the directions that it affects."""
        self._active.append(event)
        return self._affected(event)

    def end(self, event: EventCase) -> list[ImpairmentCase]:
        """End an event. Returns the new impairments of the directions that it affected."""
        self._active.remove(event)
        return self._affected(event)

    def _affected(self, event: EventCase) -> list[ImpairmentCase]:
        return [self._now(link) for link in affected_links(self._case, event)]

    def _now(self, link: str) -> ImpairmentCase:
        found = self._case.impairments_of(link) or ImpairmentCase(link=link)
        for event in self._active:
            if event.action == "partition" and link in affected_links(self._case, event):
                return ImpairmentCase(link=link, loss=ALL_LOST)
            for each in event.impairments:
                found = merged(found, each) if each.link == link else found
        return found


def affected_links(case: Case, event: EventCase) -> list[str]:
    """Return the names of the link directions that an event changes."""
    if event.action == "partition":
        pairs = zip(case.link_names, case.directions, strict=True)
        return [name for name, ends in pairs if event.host in ends]
    return [each.link for each in event.impairments]


def merged(own: ImpairmentCase, added: ImpairmentCase) -> ImpairmentCase:
    """Return the impairments of a direction, with those of an event in place of its own."""
    names = [name for group in _TOGETHER if getattr(added, group[0]) for name in group]
    return own.model_copy(update={name: getattr(added, name) for name in names})


def possible_impairments(case: Case, link: str) -> Iterator[ImpairmentCase]:
    """Yield the impairments that a direction has without events, and in each of its events."""
    own = case.impairments_of(link) or ImpairmentCase(link=link)
    yield own
    for event in case.events:
        yield from (merged(own, each) for each in event.impairments if each.link == link)
