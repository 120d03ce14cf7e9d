"""The applications of a run: started in order, supervised, and ended in reverse order.

    start   each when the one before it is ready
    update  an application that ends too early, is not ready in time, writes too much, or writes
            what it must not: RunFailed
    end     its stop signal, then SIGKILL when its time is over

The judge decides about exit codes and logs at the end. It reads from the manifest how each
application has ended.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.harness.artifact.run.manifest import CANNOT_START, NOT_READY
from windtunnel.harness.orchestrate.applications import start
from windtunnel.harness.orchestrate.applications.start import ROLE, Surroundings
from windtunnel.harness.orchestrate.lab import (
    ContainerLab,
    Lab,
    LabApplication,
    LabError,
    NotBuilt,
)
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.run_processes import RunProcesses
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

NS_PER_S = 1_000_000_000
CAPTURE_BYTES_MAX = 2 << 30
"""Maximum length of a host's capture in a run with applications."""
LOOK_INTERVAL_S = 1.0
LAST_WORDS_S = 1.0
"""Time for which an application may write on after a text that it must not write."""


@dataclass
class Started:
    """An application that has been started."""

    case: ApplicationCase
    watched: WatchedProcess
    process: LabApplication
    late_s: float
    """Time at which it should be ready."""
    is_ready: bool
    forbidden: str = ""
    """Which text it has logged that it must not, or an empty string."""
    ends_s: float = 0.0
    """Time at which the run ends because of that text."""

    def note_forbidden(self, lines: list[str]) -> None:
        """Note the first line with a text that the log must not have."""
        for line in lines:
            text = next((text for text in self.case.log_never if text in line), None)
            if text is not None and not self.forbidden:
                self.forbidden = (
                    f"{self.watched.name} logged {text!r}, which it must not: {line[:200]}"
                )
                self.ends_s = time.monotonic() + LAST_WORDS_S

    @property
    def is_awaited(self) -> bool:
        """Whether the run has to wait until this application is ready or has ended."""
        if self.watched.end_requested:
            return False
        return not self.is_ready or (self.case.ends_by_itself and self.process.poll() is None)


class Applications:
    """The applications of a run."""

    def __init__(self, cases: tuple[ApplicationCase, ...], processes: RunProcesses) -> None:
        self._cases = {each.id: each for each in cases}
        self._processes = processes
        self._started: list[Started] = []
        self._looks_s = 0.0
        """Time at which the lengths of the captures are compared with their limit again."""
        processes.starters[ROLE] = self.start

    def build_images(self, lab: Lab) -> None:
        """Build the images of the applications that have a folder for it. Raises RunFailed if one
        cannot be built.
        """
        spec = self._processes.spec
        for case in (each for each in self._cases.values() if each.build):
            self._require_allowed(case)
            assert isinstance(lab, ContainerLab)
            log = spec.folder.host(case.host).application(case.id).build_log
            try:
                name = lab.build_image(spec.scenario_file.parent, case.build, log)
            except NotBuilt as error:
                text = f"the image of application {case.id} cannot be built from {case.build}: "
                raise RunFailed(f"{text}{error}", harness_fault=False) from error
            self._processes.images[case.id] = name

    def _require_allowed(self, case: ApplicationCase) -> None:
        if not self._processes.spec.allow_commands:
            raise LabError(f"the command of application {case.id} is not allowed")

    def start_all(self, required: Callable[[], list[WatchedProcess]]) -> None:
        """Start all applications, each when the one before it is ready. Raises RunFailed if one is
        not, or if another required process ends.
        """
        for each in self._cases:
            self.start(each)
            while any(not each.is_ready for each in self._started):
                watch.require_alive(required())
                self.update()
                time.sleep(watch.POLL_S)
            self.update()

    def start(self, application_id: str) -> None:
        """Start an application, also after it was killed."""
        case = self._cases[application_id]
        self._require_allowed(case)
        watched, process = start.start(case, self._surroundings(case.id), self._processes)
        late_s = time.monotonic() + case.ready_within_ns / NS_PER_S
        self._started.append(Started(case, watched, process, late_s, not case.ready_log))

    def _surroundings(self, application_id: str) -> Surroundings:
        return Surroundings()

    @property
    def names_awaited(self) -> list[str]:
        """Return the names of the applications for which the run has to wait."""
        return [each.watched.name for each in self._started if each.is_awaited]

    def update(self) -> None:
        """Note which applications are ready. Raises RunFailed for one that has ended too early, is
        not ready in time, or has written too much or what it must not, and if the captures have
        become too long.
        """
        self._require_short_captures()
        for each in self._started:
            if each.watched.end_requested:
                continue
            has_ended = each.process.poll() is not None
            if not each.is_ready or each.case.log_never:
                lines = each.watched.new_lines()
                each.is_ready |= any(each.case.ready_log in line for line in lines)
                each.note_forbidden(lines)
            if each.forbidden and (has_ended or time.monotonic() > each.ends_s):
                raise RunFailed(each.forbidden, harness_fault=False)
            if has_ended:
                _require_expected_end(each)
            elif not each.is_ready and time.monotonic() > each.late_s:
                each.watched.problem = NOT_READY
                within = format_duration(each.case.ready_within_ns)
                text = f"{each.watched.name} is not ready after {within}: no line of its log "
                text += f"contains {each.case.ready_log!r}"
                raise RunFailed(text, harness_fault=False)

    def _require_short_captures(self) -> None:
        """Raise RunFailed if a capture is too long: what applications send has no limit."""
        if not self._cases or time.monotonic() < self._looks_s:
            return
        self._looks_s = time.monotonic() + LOOK_INTERVAL_S
        for file in self._processes.spec.folder.captures.glob("*.pcap"):
            if file.stat().st_size > CAPTURE_BYTES_MAX:
                text = f"the capture {file.name} exceeds {format_bytes(CAPTURE_BYTES_MAX)}: let "
                raise RunFailed(f"{text}the applications send less", harness_fault=False)

    def end(self) -> None:
        """End all applications in reverse order, each with its own signal and time limit."""
        for each in reversed(self._started):
            if each.process.poll() is not None:
                each.watched.problem = each.watched.problem or each.process.problem()[0]
                continue
            each.watched.end_requested = True
            each.process.send_signal(signal.Signals[f"SIG{each.case.stop_signal}"])
            within_s = each.case.stop_within_ns / NS_PER_S
            if each.process.wait(within_s) is None:
                each.process.kill()
                each.watched.late_s = within_s
            each.watched.problem = each.watched.problem or each.process.problem()[0]


def _require_expected_end(each: Started) -> None:
    """Raise RunFailed unless an application that has ended is expected to end by itself, was ready
    and has the expected exit code.
    """
    each.watched.problem, text = each.process.problem()
    name = each.watched.name
    if each.watched.problem:
        what = "cannot be started" if each.watched.problem == CANNOT_START else "was killed"
        raise RunFailed(f"{name} {what}: {text}", harness_fault=False)
    if each.is_ready and each.case.ends_by_itself:
        if each.case.may_end_with(each.process.poll() or 0, asked=False):
            return
        raise RunFailed(each.watched.describe_exit(), harness_fault=False)
    early = "before it was ready" if not each.is_ready else "before it was asked to end"
    raise RunFailed(f"{each.watched.describe_exit()} ({early})", harness_fault=False)
