"""Changes the impairments of links while the relay forwards packets, in a live run or in events.

    link-requests.json, CHANGE_SIGNAL --> settings of the compiled loop --> link-changes.json
                                                                            "changed <number>"

A signal interrupts the loop, which returns at least every 50 ms in any case. Requests are applied
between two turns, so a packet passes either before or after a change, and the counts that a change
records are exact.
"""

import signal
import time
from collections.abc import Callable

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.impairment.impairment import Impairments
from windtunnel.harness.middlebox.impairment.link_changes import change_link
from windtunnel.harness.middlebox.relay.drain import drain_ns
from windtunnel.harness.middlebox.relay.relay_state import Relay
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.case_validation import impairment_problems
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import (
    CHANGE_SIGNAL,
    LinkChange,
    LinkChanges,
    LinkRequest,
    LinkRequests,
)


class LinkControl:
    """The changes of a run's links so far. Does nothing unless they may change."""

    def __init__(
        self, case: Case, run_dir: RunDir, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._case = case
        """The case, with all impairments that there were so far."""
        self._run_dir = run_dir
        self._clock = clock
        self._is_due = False
        self._last_number = 0
        self._changes: list[LinkChange] = []
        if case.changes_links:
            self._write()
            signal.signal(CHANGE_SIGNAL, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self._is_due = True

    def drain_ns(self, packet_length_max: int) -> int:
        """Return for how long the last frames may be under way, whatever the links were before."""
        return drain_ns(self._case, packet_length_max)

    def update(self, relay: Relay) -> list[int]:
        """Apply the requests that have arrived. Returns their numbers.

        Raises DocumentError for a file that the harness never writes.
        """
        if not self._is_due:
            return []
        self._is_due = False
        found = LinkRequests.read(self._run_dir.link_requests)
        requests = found.requests if found else ()
        fresh = [each for each in requests if each.number > self._last_number]
        for each in fresh:
            self._require_valid(each)
            for case in each.impairments:
                self._apply(each.number, case, relay.impairments)
            self._last_number = each.number
        if fresh:
            self._write()
        return [each.number for each in fresh]

    def _require_valid(self, request: LinkRequest) -> None:
        for case in request.impairments:
            for problem in impairment_problems(case, ("impairments",), self._case.link_names):
                name = self._run_dir.link_requests.name
                raise DocumentError(f"{name}: request {request.number}: {problem.text}")

    def _apply(self, number: int, case: ImpairmentCase, impairments: Impairments) -> None:
        names, now_ns = self._case.link_names, self._clock()
        self._changes.append(change_link(impairments, case, names, number=number, at_ns=now_ns))
        longest = (*self._case.impairments, case)
        self._case = self._case.model_copy(update={"impairments": longest})

    def _write(self) -> None:
        LinkChanges(changes=tuple(self._changes)).write(self._run_dir.link_changes)
