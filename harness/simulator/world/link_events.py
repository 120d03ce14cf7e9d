"""Events that change links in a simulated world: the middlebox has the new impairments at once."""

from __future__ import annotations

from collections.abc import Callable

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.middlebox.impairment.link_changes import change_link
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, LinkChanges
from windtunnel.harness.scenario.resolved.link_event import LinkStates
from windtunnel.harness.scenario.schema.host_event import EventCase


class LinkEvents:
    """The changes of a simulated run's links."""

    def __init__(self, case: Case, impairments: Impairments, clock_ns: Callable[[], int]) -> None:
        self._case = case
        self._impairments = impairments
        self._clock_ns = clock_ns
        self._states = LinkStates(case)
        self._changes: list[LinkChange] = []
        self._number = 0

    def begin(self, event: EventCase) -> None:
        """Impair the links of an event."""
        self._change(self._states.begin(event))

    def end(self, event: EventCase) -> None:
        """Undo the impairments of an event, except for what other events do to links."""
        self._change(self._states.end(event))

    def _change(self, impairments: list[ImpairmentCase]) -> None:
        self._number += 1
        names, now_ns = self._case.link_names, self._clock_ns()
        self._changes += [
            change_link(self._impairments, each, names, number=self._number, at_ns=now_ns)
            for each in impairments
        ]

    def write(self, folder: RunDir) -> None:
        """Write the changes so far, if the case has events that change links."""
        if self._case.changes_links:
            LinkChanges(changes=tuple(self._changes)).write(folder.link_changes)
