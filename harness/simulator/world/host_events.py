"""Pauses, kills and restarts programs in a simulated world at specified times, impairs links, and
steps clocks.

    pending --its moment--> open --its time is over--> done
             pause, kill          resume, successor
             impair               as before
             step the clock

At other fidelity levels, the runner does this to processes with signals. Here every event is on
time. The events that happened are written for the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.simulator.applications.programs import Program
from windtunnel.harness.simulator.network.in_flight import NEVER


class Links(Protocol):
    """Changes links in a simulated world."""

    def begin(self, event: EventCase) -> None:
        """Impair the links of an event."""

    def end(self, event: EventCase) -> None:
        """Undo that."""


class Programs(Protocol):
    """Looks up the programs in a simulated world by host and role, and replaces killed programs."""

    def on_host(self, host: str, roles: Sequence[str]) -> list[Program]:
        """Return the programs with these roles on a host, except those that were killed."""

    def replace(self, killed: Program) -> None:
        """Start the replacement for a killed program."""


@dataclass
class _OpenEvent:
    """An event that is in progress."""

    case: EventCase
    victims: list[Program]
    happened: AppliedEvent

    @property
    def until_ns(self) -> int:
        return self.happened.began_ns + self.case.lasts_ns


class HostEvents:
    """The events of one run: pending, in progress, or done."""

    def __init__(
        self,
        events: Sequence[EventCase],
        programs: Programs,
        clock_ns: Callable[[], int],
        links: Links | None = None,
        step_clock: Callable[[str, int], None] | None = None,
    ) -> None:
        """Create the events of a run. `links` impairs links, and `step_clock` steps the clock of a
        host by nanoseconds: None if no event needs them.
        """
        self._pending = list(events)
        self._programs = programs
        self._links = links
        self._step_clock = step_clock
        self._clock_ns = clock_ns
        self._open: list[_OpenEvent] = []
        self._happened: list[AppliedEvent] = []
        self._first_ns = 0
        """Time at which the first message was published, or 0 before that."""
        self._has_events = bool(events)

    @property
    def is_open(self) -> bool:
        """Return whether an event is in progress."""
        return bool(self._open)

    @property
    def has_more(self) -> bool:
        """Return whether an event has not begun, or has not ended."""
        return bool(self._pending or self._open)

    @property
    def next_ns(self) -> int:
        """Return the time of the next event that begins or ends at a time, or NEVER."""
        times_ns = [each.until_ns for each in self._open]
        if self._first_ns:
            times_ns += [
                self._first_ns + each.at for each in self._pending if each.trigger == "after"
            ]
        return min(times_ns, default=NEVER)

    def look(self, published_bytes: int, delivered_bytes: int) -> None:
        """Begin and end the events that are due, given the number of bytes published and delivered
        so far.
        """
        if not self.has_more:
            return
        now_ns = self._clock_ns()
        if not self._first_ns and published_bytes:
            self._first_ns = now_ns
        for each in [each for each in self._open if now_ns >= each.until_ns]:
            self._end(each)
        reached = {"published": published_bytes, "delivered": delivered_bytes, "after": -1}
        if self._first_ns:
            reached["after"] = now_ns - self._first_ns
        for event in [each for each in self._pending if reached[each.trigger] >= each.at]:
            self._pending.remove(event)
            self._begin(event)

    def _begin(self, event: EventCase) -> None:
        if event.changes_links:
            assert self._links is not None
            self._links.begin(event)
        victims = self._programs.on_host(event.host, event.roles)
        for each in victims:
            if event.action == "kill":
                each.kill()
            elif event.action == "pause":
                each.pause()
        if event.action == "step_clock":
            assert self._step_clock is not None
            self._step_clock(event.host, event.step_ns)
        roles = sorted({each.role for each in victims})
        happened = AppliedEvent(event.id, event.host, event.action, roles, self._clock_ns(), 0)
        self._happened.append(happened)
        begun = _OpenEvent(event, victims, happened)
        self._open.append(begun)
        if event.action == "step_clock":
            self._end(begun)

    def _end(self, each: _OpenEvent) -> None:
        self._open.remove(each)
        if each.case.changes_links:
            assert self._links is not None
            self._links.end(each.case)
        for victim in each.victims:
            if each.case.action == "kill":
                self._programs.replace(victim)
            elif each.case.action == "pause":
                victim.resume()
        each.happened.ended_ns = self._clock_ns()

    def close(self, path: Path) -> None:
        """Resume every paused program and write the list of events that happened."""
        for each in [each for each in self._open if each.case.action == "pause"]:
            self._end(each)
        if self._has_events:
            write_applied_events(path, self._happened)
