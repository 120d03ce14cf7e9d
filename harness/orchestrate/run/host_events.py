"""Pausing, killing and restarting processes of the subject, as a scenario orders it.

    waiting --its moment--> under way --its time is over--> over
                SIGSTOP or SIGKILL           SIGCONT or a successor

An event's moment is when the runner sees it: workloads tell how far they are ten times a second,
and the runner looks twenty times. What really happened, and when, is left for the judge. Refuses to
know what a driver makes of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from windtunnel.harness.artifact.host.host_event import HappenedEvent, write_happened
from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.scenario.schema.host_event import EventCase

NS_PER_S = 1_000_000_000


class ProcessControl(Protocol):
    """Who can lay hands on the processes of a run."""

    def on_host(self, host: str, *roles: str) -> list[Watched]:
        """Return the living processes of these roles on a host."""

    def kill(self, victim: Watched) -> None:
        """End a process without warning."""

    def restart(self, victim: Watched) -> None:
        """Start the successor of a process that was killed."""


@dataclass
class _OpenEvent:
    """An event that has begun."""

    case: EventCase
    victims: list[Watched]
    until_s: float
    happened: HappenedEvent = field(init=False)


class HostEvents:
    """The events of one run, in the order of the file."""

    def __init__(self, events: Sequence[EventCase], hands: ProcessControl) -> None:
        self._waiting = list(events)
        self._hands = hands
        self._under_way: list[_OpenEvent] = []
        self._happened: list[HappenedEvent] = []
        self._first_s: float | None = None
        """When the first message was seen to be published."""
        self._ordered = bool(events)

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is paused, or killed and not yet started anew."""
        return bool(self._under_way)

    def patience_s(self, usual_s: float) -> float:
        """How long the runner may look away."""
        now_s = time.monotonic()
        ends_s = [max(0.0, each.until_s - now_s) for each in self._under_way]
        return min([usual_s, *ends_s])

    def look(self, published_bytes: int, delivered_bytes: int) -> None:
        """Let happen what is due, given how far the streams have come."""
        now_s = time.monotonic()
        if self._first_s is None and published_bytes:
            self._first_s = now_s
        for each in [each for each in self._under_way if now_s >= each.until_s]:
            self._end(each)
        reached = {"published": published_bytes, "delivered": delivered_bytes, "after": -1}
        if self._first_s is not None:
            reached["after"] = int((now_s - self._first_s) * NS_PER_S)
        for event in [each for each in self._waiting if reached[each.trigger] >= each.at]:
            self._waiting.remove(event)
            self._begin(event)

    def _begin(self, event: EventCase) -> None:
        victims = self._hands.on_host(event.host, *event.roles)
        roles = sorted({each.role for each in victims})
        happened = HappenedEvent(event.id, event.host, event.action, roles, time.time_ns(), 0)
        self._happened.append(happened)
        # Applications first: none of them is to see its driver stand still.
        for each in sorted(victims, key=lambda each: each.role == "driver"):
            if event.action == "kill":
                self._hands.kill(each)
            else:
                each.process.tell(signal.SIGSTOP)
        under_way = _OpenEvent(event, victims, time.monotonic() + event.lasts_ns / NS_PER_S)
        under_way.happened = happened
        self._under_way.append(under_way)

    def _end(self, each: _OpenEvent) -> None:
        self._under_way.remove(each)
        for victim in sorted(each.victims, key=lambda victim: victim.role != "driver"):
            if each.case.action == "kill":
                self._hands.restart(victim)
            else:
                victim.process.tell(signal.SIGCONT)
        each.happened.ended_ns = time.time_ns()

    def require_all_came(self) -> None:
        """Raise RunFailed, as nobody's fault but the scenario's, about an event that never came."""
        if self._waiting:
            names = ", ".join(each.id for each in self._waiting)
            raise RunFailed(f"the traffic was over before its time: {names}", ours=False)

    def close(self, path: Path) -> None:
        """Let everybody who is paused go on, and leave the account of what happened."""
        for each in list(self._under_way):
            self._under_way.remove(each)
            if each.case.action == "pause":
                for victim in each.victims:
                    victim.process.tell(signal.SIGCONT)
                each.happened.ended_ns = time.time_ns()
        if self._ordered:
            write_happened(path, self._happened)
