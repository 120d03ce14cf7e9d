"""The run of a live lab: the phases of every run, with a program in the place of traffic.

prepare, lab, start     as of a scenario; then the program is notified that the lab is ready
traffic                 its requests are answered, until it closes the lab or is gone
settle, stop, collect   as of a scenario; case and scenario are completed with what happened
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from windtunnel.harness.orchestrate.applications.applications import Applications
from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.live.lab_record import RequestRecorder
from windtunnel.harness.orchestrate.live.line_channel import ChannelClosed
from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.orchestrate.live.live_applications import LiveApplications
from windtunnel.harness.orchestrate.live.live_events import LiveEvents
from windtunnel.harness.orchestrate.live.live_links import LiveLinks, with_all_directions
from windtunnel.harness.orchestrate.live.live_scenario import document_of, text_of
from windtunnel.harness.orchestrate.live.requests import Requests
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed
from windtunnel.harness.orchestrate.run.phases import REQUIRED, Emit, Run
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.scenario.applications.application_case import MILLI, ApplicationCase
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

POLL_S = 0.02
HEADER = """\
# Recorded from a lab that a program controlled. link-changes.json has the changes of the links,
# host-events.json the pauses and kills, with their times. `windtunnel replay` repeats all of it.
"""


class Channel(Protocol):
    """Connects a lab with the program that uses it, or with what takes its place in a replay."""

    def send(self, document: dict[str, Any]) -> None:
        """Send a document. Raises ChannelClosed if the other end is closed."""

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return the documents that arrive within a time. Raises ChannelClosed at their end."""


class LiveRun(Run):
    """A run that a program controls over a channel."""

    def __init__(
        self,
        spec: RunSpec,
        lab: Lab,
        emit: Emit,
        channel: Channel,
        options: Mapping[str, Any],
    ) -> None:
        super().__init__(spec, lab, emit)
        self._channel = channel
        self._options = options
        self._live: LiveApplications | None = None
        self._live_events: LiveEvents | None = None
        self._recorder = RequestRecorder(options)

    def _write_scenario(self) -> None:
        self._write_document(document_of(self._options))

    def _write_document(self, document: Mapping[str, Any]) -> None:
        self.spec.folder.scenario.write_text(HEADER + text_of(document), encoding="utf-8")

    def _completed(self, case: Case) -> Case:
        return with_all_directions(case)

    def _make_applications(self, case: Case) -> Applications:
        self._live = LiveApplications(self.processes)
        return self._live

    def _traffic(self) -> None:
        assert self._case is not None
        assert self._live is not None
        events = LiveEvents(self.processes)
        self._events = self._live_events = events
        relay = self.processes.of("relay")[0]
        requests = Requests(
            spec=self.spec,
            case=self._case,
            processes=self.processes,
            applications=self._live,
            events=events,
            links=LiveLinks(self._case, self._options.get("links", ())),
            requester=LinkRequester(self.spec.folder, relay),
            send=self._answer,
        )
        try:
            self._channel.send({"ready": requests.description()})
            self._recorder.begin()
            self._serve(requests)
        except ChannelClosed as error:
            text = f"the program that used the lab ended without closing it ({error})"
            raise RunFailed(text, harness_fault=False) from error
        finally:
            self._recorder.end()

    def _answer(self, document: dict[str, Any]) -> None:
        self._recorder.answered(document)
        self._channel.send(document)

    def _serve(self, requests: Requests) -> None:
        """Answer requests until the program closes the lab."""
        assert self._live is not None
        deadline_s = time.monotonic() + self.spec.scenario.budget.wall_ns / 1e9
        while not requests.is_closed:
            for document in self._channel.receive(POLL_S):
                started = len(self._live.cases)
                self._recorder.asked(document)
                requests.begin(document)
                if len(self._live.cases) > started:
                    self._recorder.named(self._live.cases[-1].id)
            self._live.update()
            requests.update()
            watch.require_alive(self.processes.active(*REQUIRED))
            if time.monotonic() > deadline_s:
                raise RunFailed("the lab was up for too long", harness_fault=False)

    def finish(self, *, is_fast: bool) -> None:
        super().finish(is_fast=is_fast)
        if self._case is None or self._live is None:
            return
        events = () if self._live_events is None else self._live_events.cases
        case = self._case.model_copy(update={"applications": self._live.cases, "events": events})
        try:
            self._recorder.write(self.spec.folder.lab_requests)
            case.write(self.spec.folder.case)
            document = document_of(self._options)
            applications = [_application_document(each) for each in case.applications]
            self._write_document({**document, "applications": applications})
        except OSError as error:
            raise LabError(f"{error.filename}: {error.strerror}") from error


def _application_document(case: ApplicationCase) -> dict[str, Any]:
    """Return an application as the table of a scenario file."""
    found: dict[str, Any] = {"id": case.id, "on": case.host}
    if case.image:
        found["image"] = case.image
    if case.command:
        found["command"] = list(case.command)
    limits = {
        "memory": format_bytes(case.memory_bytes) if case.memory_bytes else None,
        "cpus": case.milli_cpus / MILLI or None,
        "processes": case.processes_max or None,
    }
    if any(limits.values()):
        found["limits"] = {key: value for key, value in limits.items() if value}
    if case.env:
        found["env"] = dict(case.env)
    found["driver"] = case.driver
    if case.ready_log:
        within = format_duration(case.ready_within_ns)
        found["ready"] = {"log": case.ready_log, "within": within}
    found["stop"] = {"signal": case.stop_signal, "within": format_duration(case.stop_within_ns)}
    if case.exit_code is not None:
        found["expect"] = {"exit": case.exit_code}
    return found
