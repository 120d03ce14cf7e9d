"""Pauses and kills of processes in a live lab, recorded as the judge knows host events.

    pause --> resume        SIGSTOP, SIGCONT
    kill  --> restart       SIGKILL, a new process

A program ends an event when it wants, so the length of an event is known only at its end.
"""

from __future__ import annotations

import time
from pathlib import Path

from windtunnel.harness.artifact.host.host_event import write_applied_events
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.run.host_events import ActiveEvent, HostEvents, ProcessControl
from windtunnel.harness.orchestrate.run.run_processes import process_id
from windtunnel.harness.scenario.schema.host_event import EVENTS_MAX, EventCase

ENDS = {"pause": "resume", "kill": "restart"}
FOREVER_S = 1e9


class LiveEvents(HostEvents):
    """The events of a live lab so far."""

    def __init__(self, control: ProcessControl) -> None:
        super().__init__((), control)
        self._began_s = time.monotonic()
        self._all: list[ActiveEvent] = []

    def start(self, action: str, host: str, application: str = "") -> None:
        """Pause or kill the driver of a host, or one of its applications."""
        what = f"application {application}" if application else f"the driver of host {host}"
        if self._active_event(host, application) is not None:
            raise OptionError(f"{what} is paused or killed already")
        if len(self._all) >= EVENTS_MAX:
            raise OptionError(f"a lab has at most {EVENTS_MAX} pauses and kills")
        event = EventCase(
            id=f"{action}-{len(self._all) + 1}",
            host=host,
            process="application" if application else "driver",
            trigger="after",
            at=int((time.monotonic() - self._began_s) * 1e9),
            action="pause" if action == "pause" else "kill",
            lasts_ns=0,
            application=application,
        )
        found = self._control.on_host(host, *event.roles)
        if not any(
            each.process.poll() is None and application in ("", process_id(each)) for each in found
        ):
            raise OptionError(f"{what} is not running")
        active = self.begin_event(event)
        active.until_s = FOREVER_S
        self._all.append(active)

    def finish(self, end: str, host: str, application: str = "") -> None:
        """End a pause with `resume`, or a kill with `restart`."""
        active = self._active_event(host, application)
        what = f"application {application}" if application else f"the driver of host {host}"
        if active is None or ENDS[active.case.action] != end:
            done = {"resume": "paused", "restart": "killed"}[end]
            raise OptionError(f"{what} was not {done}")
        self.end_event(active)

    def _active_event(self, host: str, application: str) -> ActiveEvent | None:
        for each in self._all:
            case = each.case
            if (case.host, case.application) == (host, application) and not each.applied.ended_ns:
                return each
        return None

    @property
    def cases(self) -> tuple[EventCase, ...]:
        """The events as parts of a case, with the times that they lasted."""
        return tuple(
            each.case.model_copy(
                update={"lasts_ns": max(0, each.applied.ended_ns - each.applied.began_ns)}
            )
            for each in self._all
        )

    def close(self, path: Path) -> None:
        """End all pauses, and write the record of all events. What was killed stays killed."""
        super().close(path)
        for each in self._all:
            each.applied.ended_ns = each.applied.ended_ns or time.time_ns()
        if self._all:
            write_applied_events(path, [each.applied for each in self._all])
