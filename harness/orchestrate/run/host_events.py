"""Host events: pauses, kills and restarts of processes, and changes of links during a run, as the
scenario specifies.

    pending --trigger--> active --duration has elapsed--> done
                SIGSTOP or SIGKILL         SIGCONT or a restart
                a host is cut off          and connected again
                links are impaired         and as before

An event begins when the runner observes its trigger: workloads print their progress ten times per
second, and the runner polls twenty times per second. The actual times are recorded for the judge.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.run_processes import process_id
from windtunnel.harness.scenario.schema.host_event import EventCase

NS_PER_S = 1_000_000_000


class ProcessControl(Protocol):
    """The operations on processes that host events need, such as finding, killing and restarting
    them.
    """

    def on_host(self, host: str, *roles: str) -> list[WatchedProcess]:
        """Return a host's processes that have one of these roles and were not asked to end."""

    def kill(self, victim: WatchedProcess) -> None:
        """Kill a process with SIGKILL."""

    def restart(self, victim: WatchedProcess) -> None:
        """Start a new process in place of a killed one."""


class LinkControl(Protocol):
    """The operations on links that partitions and impairments need."""

    def begin(self, event: EventCase) -> None:
        """Cut a host off, or impair links."""

    def end(self, event: EventCase) -> None:
        """Undo that."""


@dataclass
class ActiveEvent:
    """A host event that has begun but not ended."""

    case: EventCase
    victims: list[WatchedProcess]
    until_s: float
    applied: AppliedEvent = field(init=False)


class HostEvents:
    """The host events of a run, in the order of the scenario file."""

    def __init__(
        self,
        events: Sequence[EventCase],
        control: ProcessControl,
        links: LinkControl | None = None,
    ) -> None:
        self._waiting = list(events)
        self._control = control
        self._links = links
        """What changes links. None if no event does."""
        self._active: list[ActiveEvent] = []
        self._applied: list[AppliedEvent] = []
        self._first_s: float | None = None
        """Time at which the first published message was observed."""
        self._has_events = bool(events)

    def begin(self) -> None:
        """Count the time of all events from now, for a run without streams."""
        self._first_s = time.monotonic()

    @property
    def is_active(self) -> bool:
        """Whether any process is currently paused, or has been killed and not yet restarted."""
        return bool(self._active)

    def poll_delay_s(self, usual_s: float) -> float:
        """Return the time in seconds until the next event ends, but at most `usual_s`."""
        now_s = time.monotonic()
        ends_s = [max(0.0, each.until_s - now_s) for each in self._active]
        return min([usual_s, *ends_s])

    def update(self, published_bytes: int, delivered_bytes: int) -> None:
        """Begin and end the events that are due, given the progress of the streams."""
        now_s = time.monotonic()
        if self._first_s is None and published_bytes:
            self._first_s = now_s
        for each in [each for each in self._active if now_s >= each.until_s]:
            self.end_event(each)
        reached = {"published": published_bytes, "delivered": delivered_bytes, "after": -1}
        if self._first_s is not None:
            reached["after"] = int((now_s - self._first_s) * NS_PER_S)
        for event in [each for each in self._waiting if reached[each.trigger] >= each.at]:
            self._waiting.remove(event)
            self.begin_event(event)

    def begin_event(self, event: EventCase) -> ActiveEvent:
        """Begin an event now."""
        victims = [
            each
            for each in self._control.on_host(event.host, *event.roles)
            if event.application in ("", process_id(each))
            # An application that has ended by itself is not to be started again.
            and (each.role != "application" or each.process.poll() is None)
        ]
        roles = sorted({each.role for each in victims})
        applied = AppliedEvent(event.id, event.host, event.action, roles, time.time_ns(), 0)
        self._applied.append(applied)
        if event.changes_links:
            assert self._links is not None
            self._links.begin(event)
        # Applications are paused first, so that none of them runs while its driver is paused.
        for each in sorted(victims, key=lambda each: each.role == "driver"):
            if event.action == "kill":
                self._control.kill(each)
            else:
                each.process.send_signal(signal.SIGSTOP)
        active = ActiveEvent(event, victims, time.monotonic() + event.lasts_ns / NS_PER_S)
        active.applied = applied
        self._active.append(active)
        return active

    def end_event(self, each: ActiveEvent) -> None:
        """End an event now: continue or restart the processes."""
        self._active.remove(each)
        if each.case.changes_links:
            assert self._links is not None
            self._links.end(each.case)
        for victim in sorted(each.victims, key=lambda victim: victim.role != "driver"):
            if each.case.action == "kill":
                self._control.restart(victim)
            else:
                victim.process.send_signal(signal.SIGCONT)
        each.applied.ended_ns = time.time_ns()

    def require_all_triggered(self) -> None:
        """Raise RunFailed if an event of the scenario was never triggered, unless it was drawn.

        This is not a harness failure.
        """
        names = ", ".join(each.id for each in self._waiting if not each.drawn)
        if names:
            raise RunFailed(
                f"the traffic ended before these events were triggered: {names}",
                harness_fault=False,
            )

    def close(self, path: Path) -> None:
        """Resume all paused processes, and write the record of the events that took place."""
        for each in list(self._active):
            self._active.remove(each)
            if each.case.action == "pause":
                for victim in each.victims:
                    victim.process.send_signal(signal.SIGCONT)
                each.applied.ended_ns = time.time_ns()
        if self._has_events:
            write_applied_events(path, self._applied)
