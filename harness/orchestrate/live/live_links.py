"""The links of a live lab: which impairments each direction has now.

impair      sets some of them, keeps the others; None removes one
partition   everything is lost, until `reconnect`
reconnect   ends a partition, with the impairments from before it
heal        as the link was when the lab was opened
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.orchestrate.live.live_scenario import OptionError, require_impairments
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, impairment_case
from windtunnel.harness.scenario.resolved.link_event import ALL_LOST

BOTH = "both"
Direction = tuple[str, str]
"""A sending and a receiving host."""


@dataclass
class _State:
    """What a direction was asked to be."""

    original: dict[str, Any]
    impairments: dict[str, Any]
    is_partitioned: bool = False


class LiveLinks:
    """The directions of all links, by the names of their hosts."""

    def __init__(self, case: Case, links: Iterable[Mapping[str, Any]]) -> None:
        self._names = dict(zip(case.directions, case.link_names, strict=True))
        self._states: dict[Direction, _State] = {}
        given = {frozenset(each["between"]): each.get("impairments") or {} for each in links}
        for direction in case.directions:
            found = given.get(frozenset(direction), {})
            impairments = found.get(BOTH) or found.get("->".join(direction)) or {}
            self._states[direction] = _State(deepcopy(impairments), deepcopy(impairments))

    def directions(self, first: str, second: str, to: str | None = None) -> list[Direction]:
        """Return the directions of a link, or only the one that leads to the host `to`."""
        both = [(first, second), (second, first)]
        if both[0] not in self._states:
            links = ", ".join(f"{a}-{b}" for a, b in list(self._states)[::2])
            raise OptionError(f"there is no link {first}-{second}: the links are {links}")
        if to is None:
            return both
        found = [each for each in both if each[1] == to]
        if not found:
            raise OptionError(f"to: expected {first} or {second}, found {to!r}")
        return found

    def impair(
        self, directions: Iterable[Direction], changes: Mapping[str, Any]
    ) -> list[ImpairmentCase]:
        """Set some impairments of link directions. Raises OptionError if they are not valid."""
        chosen = list(directions)
        new = {}
        for each in chosen:
            merged = {**self._states[each].impairments, **changes}
            new[each] = {key: value for key, value in merged.items() if value is not None}
            self._case(each, new[each])
        for each in chosen:
            self._states[each].impairments = new[each]
        return self._cases(chosen)

    def partition(self, directions: Iterable[Direction]) -> list[ImpairmentCase]:
        return self._with_partition(list(directions), is_partitioned=True)

    def reconnect(self, directions: Iterable[Direction]) -> list[ImpairmentCase]:
        return self._with_partition(list(directions), is_partitioned=False)

    def heal(self, directions: Iterable[Direction]) -> list[ImpairmentCase]:
        chosen = list(directions)
        for each in chosen:
            self._states[each].impairments = deepcopy(self._states[each].original)
        return self._with_partition(chosen, is_partitioned=False)

    def as_document(self) -> list[dict[str, Any]]:
        """Return the present state of all directions, as `status` shows it."""
        return [
            {
                "from": a,
                "to": b,
                "partitioned": state.is_partitioned,
                "impairments": state.impairments,
            }
            for (a, b), state in self._states.items()
        ]

    def _with_partition(
        self, directions: list[Direction], *, is_partitioned: bool
    ) -> list[ImpairmentCase]:
        for each in directions:
            self._states[each].is_partitioned = is_partitioned
        return self._cases(directions)

    def _cases(self, directions: Iterable[Direction]) -> list[ImpairmentCase]:
        found = []
        for each in directions:
            state = self._states[each]
            if state.is_partitioned:
                found.append(ImpairmentCase(link=self._names[each], loss=ALL_LOST))
            else:
                found.append(self._case(each, state.impairments))
        return found

    def _case(self, direction: Direction, impairments: Mapping[str, Any]) -> ImpairmentCase:
        name = self._names[direction]
        if not impairments:
            return ImpairmentCase(link=name)
        scenario = require_impairments(direction, impairments)
        return impairment_case(name, scenario.network.all_links[0].impairments[BOTH])


def with_all_directions(case: Case) -> Case:
    """Return a live case, in which every direction has impairments that may change."""
    found = tuple(
        case.impairments_of(name) or ImpairmentCase(link=name) for name in case.link_names
    )
    return case.model_copy(update={"live": True, "impairments": found})
