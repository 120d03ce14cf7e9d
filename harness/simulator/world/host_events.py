"""Pausing, killing and restarting programs of a simulated world, at the moment that was ordered.

    waiting --its moment--> under way --its time is over--> over
               pause, kill              resume, a successor

What the runner does to processes by signals, done to programs; here nobody is late. What happened
is left for the judge. Refuses to know what a driver makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windtunnel.harness.artifact.host.host_event import HappenedEvent, write_happened
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.simulator.applications.programs import Program


class Cast(Protocol):
    """All programs of a world."""

    def on_host(self, host: str, roles: Sequence[str]) -> list[Program]:
        """The living of these roles on a host."""

    def replace(self, killed: Program) -> None:
        """Let the successor of a program that was killed begin."""


@dataclass
class _OpenEvent:
    """An event that has begun."""

    case: EventCase
    victims: list[Program]
    happened: HappenedEvent

    @property
    def until_ns(self) -> int:
        return self.happened.began_ns + self.case.lasts_ns


class HostEvents:
    """The events of one run, in the order of the file."""

    def __init__(
        self, events: Sequence[EventCase], cast: Cast, clock_ns: Callable[[], int]
    ) -> None:
        self._waiting = list(events)
        self._cast = cast
        self._clock_ns = clock_ns
        self._under_way: list[_OpenEvent] = []
        self._happened: list[HappenedEvent] = []
        self._first_ns = 0
        """When the first message was published; 0 before."""
        self._are_ordered = bool(events)

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is paused, or killed and not yet started anew."""
        return bool(self._under_way)

    def look(self, published_bytes: int, delivered_bytes: int) -> None:
        """Let happen what is due, given how far the streams have come."""
        if not self._waiting and not self._under_way:
            return
        now_ns = self._clock_ns()
        if not self._first_ns and published_bytes:
            self._first_ns = now_ns
        for each in [each for each in self._under_way if now_ns >= each.until_ns]:
            self._end(each)
        reached = {"published": published_bytes, "delivered": delivered_bytes, "after": -1}
        if self._first_ns:
            reached["after"] = now_ns - self._first_ns
        for event in [each for each in self._waiting if reached[each.trigger] >= each.at]:
            self._waiting.remove(event)
            self._begin(event)

    def _begin(self, event: EventCase) -> None:
        victims = self._cast.on_host(event.host, event.roles)
        for each in victims:
            if event.action == "kill":
                each.kill()
            else:
                each.pause()
        roles = sorted({each.role for each in victims})
        happened = HappenedEvent(event.id, event.host, event.action, roles, self._clock_ns(), 0)
        self._happened.append(happened)
        self._under_way.append(_OpenEvent(event, victims, happened))

    def _end(self, each: _OpenEvent) -> None:
        self._under_way.remove(each)
        for victim in each.victims:
            if each.case.action == "kill":
                self._cast.replace(victim)
            else:
                victim.resume()
        each.happened.ended_ns = self._clock_ns()

    def close(self, path: Path) -> None:
        """Let everybody who is paused go on, and leave the account of what happened."""
        for each in [each for each in self._under_way if each.case.action == "pause"]:
            self._end(each)
        if self._are_ordered:
            write_happened(path, self._happened)
