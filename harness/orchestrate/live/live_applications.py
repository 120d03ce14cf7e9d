"""The applications of a live lab: a program starts them one by one, while the run lasts.

They may end by themselves or be asked to. The judge compares their exit codes with what the program
expects of them. One that cannot be started, or is not ready in time, is reported to the program,
which decides how to go on; the verdict names it in any case.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from windtunnel.harness.artifact.run.manifest import CANNOT_START, NOT_READY
from windtunnel.harness.orchestrate.applications.applications import (
    NS_PER_S,
    Applications,
    Started,
)
from windtunnel.harness.orchestrate.applications.start import Surroundings
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.run.run_processes import RunProcesses
from windtunnel.harness.scenario.applications.application import APPLICATIONS_MAX
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.units import format_duration


class LiveApplications(Applications):
    """The applications that a program has started so far."""

    def __init__(self, processes: RunProcesses) -> None:
        super().__init__((), processes)
        self._around: dict[str, Surroundings] = {}

    @property
    def cases(self) -> tuple[ApplicationCase, ...]:
        """The applications in the order in which they were started."""
        return tuple(self._cases.values())

    def launch(self, case: ApplicationCase, around: Surroundings) -> None:
        """Start a new application."""
        if case.id in self._cases:
            raise OptionError(f"application {case.id!r} exists already: choose another id")
        if len(self._cases) >= APPLICATIONS_MAX:
            raise OptionError(f"a lab has at most {APPLICATIONS_MAX} applications")
        self._cases[case.id] = case
        self._around[case.id] = around
        self.start(case.id)

    def free_id(self, wanted: str) -> str:
        """Return an id that no application has yet: the wanted one, or with a number."""
        number = 1
        found = wanted
        while found in self._cases:
            number += 1
            found = f"{wanted}-{number}"
        return found

    def newest(self, application_id: str) -> Started:
        """Return the newest process of an application, which may have been started again."""
        found = [each for each in self._started if each.case.id == application_id]
        if not found:
            raise OptionError(f"there is no application {application_id!r}")
        return found[-1]

    def expect_exit(self, application_id: str, code: int) -> None:
        """Change the exit code that is expected of an application."""
        case = self._cases[application_id]
        self._cases[application_id] = case.model_copy(update={"exit_code": code})

    def stop(self, application_id: str) -> Callable[[], dict[str, Any] | None]:
        """Ask an application to end, as at the end of the lab. Returns a function that returns the
        exit code once it has ended. If it is late, it is killed.
        """
        each = self.newest(application_id)
        within_s = each.case.stop_within_ns / NS_PER_S
        late_s = time.monotonic() + within_s
        if each.process.poll() is None:
            each.watched.end_requested = True
            each.process.send_signal(signal.Signals[f"SIG{each.case.stop_signal}"])

        def condition() -> dict[str, Any] | None:
            code = each.process.poll()
            if code is not None:
                return {"code": code}
            if time.monotonic() > late_s:
                each.watched.late_s = within_s
                each.process.kill()
                raise OptionError(each.watched.late_text)
            return None

        return condition

    def failures(self, apart_from: Started | None = None) -> str:
        """Return how applications have ended that should not have, or an empty string."""
        found = []
        for each in map(self.newest, self._cases):
            code = each.process.poll()
            if code is None or each is apart_from or each.watched.end_requested:
                continue
            if not self._cases[each.case.id].may_end_with(code, asked=False):
                found.append(each.watched.describe_exit())
        return "; ".join(found)

    def as_document(self) -> list[dict[str, Any]]:
        """Return the state of all applications, as `status` shows it."""
        found = []
        for each in self._started:
            code = each.process.poll()
            state = {"id": each.case.id, "host": each.case.host, "exit_code": code}
            found.append({**state, "ready": each.is_ready, "log": str(each.watched.log)})
        return found

    def update(self) -> None:
        """Note which applications are ready, and why some have ended. Raises RunFailed only if the
        captures have become too long.
        """
        self._require_short_captures()
        for each in self._started:
            if not each.is_ready:
                lines = each.watched.new_lines()
                each.is_ready = any(each.case.ready_log in line for line in lines)
            if each.process.poll() is not None and not each.watched.problem:
                each.watched.problem = each.process.problem()[0]

    def obstacle(self, each: Started) -> str:
        """Return why an application will not become ready any more, or an empty string. One that is
        late is killed.
        """
        if each.process.poll() is not None:
            problem, text = each.process.problem()
            if problem:
                what = "cannot be started" if problem == CANNOT_START else "was killed"
                return f"{each.watched.name} {what}: {text}"
            return "" if each.is_ready else f"{each.watched.describe_exit()} (before it was ready)"
        if each.is_ready or time.monotonic() <= each.late_s:
            return ""
        each.watched.problem = NOT_READY
        each.watched.end_requested = True
        each.process.kill()
        within = format_duration(each.case.ready_within_ns)
        text = f"{each.watched.name} is not ready after {within}: no line of its log contains "
        return f"{text}{each.case.ready_log!r}"

    def _surroundings(self, application_id: str) -> Surroundings:
        return self._around[application_id]
