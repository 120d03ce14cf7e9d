"""Events of a run that change its links, by requests to the relay for their new impairments."""

from __future__ import annotations

from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.link_event import LinkStates
from windtunnel.harness.scenario.schema.host_event import EventCase


class LinkEvents:
    """The partitions and impairments of a run whose relay changes its links."""

    def __init__(self, case: Case, requester: LinkRequester) -> None:
        self._states = LinkStates(case)
        self._requester = requester

    def begin(self, event: EventCase) -> None:
        """Cut a host off, or impair links."""
        self._requester.request(self._states.begin(event))

    def end(self, event: EventCase) -> None:
        """Connect a host again, or undo impairments, except for what other events do to links."""
        self._requester.request(self._states.end(event))
