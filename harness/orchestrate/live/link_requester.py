"""Requests changes of links from the relay of a live lab, and waits until they are applied.

request --> link-requests.json, signal --> relay --> line "changed <number>" in its log
"""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_case import CHANGES_MAX
from windtunnel.harness.scenario.resolved.link_change import (
    CHANGE_SIGNAL,
    CHANGED,
    LinkRequest,
    LinkRequests,
)


class LinkRequester:
    """All requests of a run to its relay."""

    def __init__(self, folder: RunDir, relay: WatchedProcess) -> None:
        self._path = folder.link_requests
        self._relay = relay
        self._requests: list[LinkRequest] = []
        self._applied = 0

    def request(self, impairments: Sequence[ImpairmentCase]) -> int:
        """Ask the relay to change link directions. Returns the number of the request."""
        directions = sum(len(each.impairments) for each in self._requests) + len(impairments)
        if directions > CHANGES_MAX:
            raise OptionError(f"a lab changes its links at most {CHANGES_MAX} times")
        number = len(self._requests) + 1
        self._requests.append(LinkRequest(number=number, impairments=tuple(impairments)))
        LinkRequests(requests=tuple(self._requests)).write(self._path)
        self._relay.process.send_signal(CHANGE_SIGNAL)
        return number

    def is_applied(self, number: int) -> bool:
        """Return whether the relay has applied a request."""
        for line in self._relay.new_lines():
            word, _, rest = line.partition(" ")
            if word == CHANGED and rest.isdigit():
                self._applied = max(self._applied, int(rest))
        return number <= self._applied
