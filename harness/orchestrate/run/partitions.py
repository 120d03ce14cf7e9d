"""Partitions of a run: hosts whose links lose everything for a while, as the scenario specifies.

cut a       a->b, b->a, a->c, c->a    lose everything
cut b       b->c, c->b                too; the others already do
reconnect a       a->c, c->a          as the scenario has them; a-b waits for b
"""

from __future__ import annotations

from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.schema.units import BILLION

ALL_LOST = LossCase(model="iid", shares_ppb=(BILLION,))


class Partitions:
    """The hosts that are cut off now, of a run whose relay changes its links."""

    def __init__(self, case: Case, requester: LinkRequester) -> None:
        self._case = case
        self._requester = requester
        self._cut_off: list[str] = []

    def cut(self, host: str) -> None:
        """Cut a host off from all others."""
        self._cut_off.append(host)
        self._request(host)

    def reconnect(self, host: str) -> None:
        """Connect a host again, except with hosts that are cut off themselves."""
        self._cut_off.remove(host)
        self._request(host)

    def _request(self, host: str) -> None:
        case = self._case
        self._requester.request(
            [
                self._impairments(name, ends)
                for name, ends in zip(case.link_names, case.directions, strict=True)
                if host in ends
            ]
        )

    def _impairments(self, link: str, ends: tuple[str, str]) -> ImpairmentCase:
        if any(each in self._cut_off for each in ends):
            return ImpairmentCase(link=link, loss=ALL_LOST)
        return self._case.impairments_of(link) or ImpairmentCase(link=link)
