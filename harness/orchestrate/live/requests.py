"""The requests of the program that uses a live lab, and their answers.

    {"id": 7, "do": "start", ...}   -->   {"id": 7, "ok": {...}}   or   {"id": 7, "error": "..."}

Several requests may wait at the same time, each for its own condition: an application that becomes
ready or ends, a link that has changed, a counter that reaches a value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.orchestrate.applications.applications import Started
from windtunnel.harness.orchestrate.lab import ContainerLab, LabError
from windtunnel.harness.orchestrate.live import live_counters
from windtunnel.harness.orchestrate.live.application_request import application_request
from windtunnel.harness.orchestrate.live.link_requester import LinkRequester
from windtunnel.harness.orchestrate.live.live_applications import LiveApplications
from windtunnel.harness.orchestrate.live.live_events import LiveEvents
from windtunnel.harness.orchestrate.live.live_links import LiveLinks
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.run.run_processes import RunProcesses
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase

CHANGE_TIMEOUT_S = 10.0
WAIT_S_MAX = 86_400.0
Answer = dict[str, Any]
Condition = Callable[[], Answer | None]
"""Returns the answer, or None as long as it has to wait. Raises OptionError if it waits in vain."""


@dataclass
class _Waiting:
    """A request that waits for its condition."""

    number: int
    condition: Condition


class Requests:
    """The requests that a program has made so far."""

    def __init__(
        self,
        *,
        spec: RunSpec,
        case: Case,
        processes: RunProcesses,
        applications: LiveApplications,
        events: LiveEvents,
        links: LiveLinks,
        requester: LinkRequester,
        send: Callable[[Answer], None],
    ) -> None:
        self._spec = spec
        self._case = case
        self._processes = processes
        self._applications = applications
        self._events = events
        self._links = links
        self._requester = requester
        self._send = send
        self._waiting: list[_Waiting] = []
        self.is_closed = False
        """Whether the program has closed the lab."""
        self._handlers: dict[str, Callable[[Mapping[str, Any]], Condition]] = {
            "start": self._start,
            "wait": self._wait,
            "stop": self._stop,
            "event": self._event,
            "link": self._link,
            "counters": self._counters,
            "counter": self._counter,
            "status": self._status,
            "close": self._close,
        }

    def description(self) -> Answer:
        """Return what a program needs to know about the lab."""
        hosts = {each.name: each.address for each in self._case.hosts}
        directories = {each: self._processes.directory(each) for each in hosts}
        folder, lab = str(self._spec.folder.path), self._processes.lab
        found = {"run_dir": folder, "addresses": hosts, "aeron_dirs": directories}
        if not isinstance(lab, ContainerLab):
            return found
        places = {}
        for host, directory in directories.items():
            neighbor = lab.neighbor(host)
            variables = {**self._processes.timeouts, "AERON_DIR": directory}
            described = {"container": neighbor.name, "labels": dict(neighbor.labels)}
            places[host] = {**described, "variables": variables}
        return {**found, "places": places}

    def begin(self, document: Mapping[str, Any]) -> None:
        """Begin a request. Its answer is sent now, or by a later call of `update`."""
        number = document.get("id")
        if not isinstance(number, int):
            return
        try:
            handler = self._handlers.get(str(document.get("do")))
            if handler is None:
                raise OptionError(f"unknown request {str(document.get('do'))[:80]!r}")
            waiting = _Waiting(number, handler(document))
        except (LabError, KeyError, TypeError, ValueError) as error:
            self._send({"id": number, "error": _text(error)})
            return
        if not self._answer(waiting):
            self._waiting.append(waiting)

    def update(self) -> None:
        """Answer the requests whose conditions are fulfilled."""
        self._waiting = [each for each in self._waiting if not self._answer(each)]

    def _answer(self, waiting: _Waiting) -> bool:
        try:
            found = waiting.condition()
        except (LabError, ValueError) as error:
            self._send({"id": waiting.number, "error": _text(error)})
            return True
        if found is None:
            return False
        self._send({"id": waiting.number, "ok": found})
        return True

    # ---- applications ----

    def _start(self, document: Mapping[str, Any]) -> Condition:
        wanted = application_request(
            document, self._case, self._applications.free_id, self._spec.fidelity
        )
        case = wanted.case
        self._applications.launch(case, wanted.surroundings)
        started = self._applications.newest(case.id)

        def condition() -> Answer | None:
            obstacle = self._applications.obstacle(started)
            if obstacle:
                raise self._late(obstacle, started)
            if not started.is_ready:
                return None
            files = self._spec.folder.host(case.host).application(case.id)
            return {"application": case.id, "log": str(files.log)}

        return condition

    def _wait(self, document: Mapping[str, Any]) -> Condition:
        """Wait until an application has ended, with the exit code that is expected of it."""
        name = str(document["application"])
        started = self._applications.newest(name)
        code = document.get("code")
        if code is not None:
            self._applications.expect_exit(name, _whole(code, "code", 0, 255))
        late_s, within_s = _deadline_s(document)

        def condition() -> Answer | None:
            found = started.process.poll()
            if found is not None:
                problem, text = started.process.problem()
                if problem:
                    raise OptionError(f"{started.watched.name}: {text}")
                return {"code": found, "log": started.process.tail(3)}
            if time.monotonic() > late_s:
                last = started.process.tail(3)
                text = f"{started.watched.name} has not ended after {within_s:g} s"
                raise self._late(f"{text}; last log lines: {last}" if last else text, started)
            return None

        return condition

    def _late(self, text: str, waited_for: Started | None = None) -> OptionError:
        """Return the error of a request that has waited in vain, which is often because of another
        application that has failed.
        """
        failures = self._applications.failures(apart_from=waited_for)
        return OptionError(f"{failures}; {text}" if failures else text)

    def _stop(self, document: Mapping[str, Any]) -> Condition:
        return self._applications.stop(str(document["application"]))

    def _event(self, document: Mapping[str, Any]) -> Condition:
        """Pause, resume, kill or restart an application or a driver."""
        action, name = str(document["action"]), str(document.get("application") or "")
        host = self._applications.newest(name).case.host if name else str(document["host"])
        if host not in {each.name for each in self._case.hosts}:
            raise OptionError(f"there is no host {host!r}")
        if action in ("pause", "kill"):
            self._events.start(action, host, name)
        elif action in ("resume", "restart"):
            self._events.finish(action, host, name)
        else:
            raise OptionError(f"expected pause, resume, kill or restart, found {action[:80]!r}")
        return lambda: {}

    # ---- links and counters ----

    def _link(self, document: Mapping[str, Any]) -> Condition:
        first, second = (str(each) for each in document["between"])
        directions = self._links.directions(first, second, document.get("to"))
        action = str(document["action"])
        impairments: list[ImpairmentCase]
        if action == "impair":
            impairments = self._links.impair(directions, document["impairments"])
        elif action in ("partition", "reconnect", "heal"):
            impairments = getattr(self._links, action)(directions)
        else:
            raise OptionError(f"expected impair, partition, reconnect or heal, found {action!r}")
        number = self._requester.request(impairments)
        late_s = time.monotonic() + CHANGE_TIMEOUT_S

        def condition() -> Answer | None:
            if self._requester.is_applied(number):
                return {}
            if time.monotonic() > late_s:
                raise LabError(f"the relay has not changed the link within {CHANGE_TIMEOUT_S:g} s")
            return None

        return condition

    def _counters(self, document: Mapping[str, Any]) -> Condition:
        found = {"counters": live_counters.documents(self._counters_of(self._host(document)))}
        return lambda: found

    def _counter(self, document: Mapping[str, Any]) -> Condition:
        """Wait until a counter has reached a value."""
        host = self._host(document)
        selected = live_counters.Selection.of(document)
        least = _whole(document["at_least"], "at_least", -(1 << 63), (1 << 63) - 1)
        late_s, within_s = _deadline_s(document)

        def condition() -> Answer | None:
            found = live_counters.largest(self._counters_of(host), selected)
            if found is not None and found >= least:
                return {"value": found}
            if time.monotonic() > late_s:
                value = "there is no such counter" if found is None else f"it is {found}"
                text = (
                    f"{selected.text} on host {host} has not reached {least} after {within_s:g} s"
                )
                raise self._late(f"{text}: {value}")
            return None

        return condition

    def _counters_of(self, host: str) -> list[CounterFacts]:
        directory = self._processes.directory(host)
        return live_counters.counters(self._processes.lab, host, directory)

    def _host(self, document: Mapping[str, Any]) -> str:
        host, hosts = str(document["host"]), [each.name for each in self._case.hosts]
        if host not in hosts:
            raise OptionError(f"there is no host {host!r}: the hosts are {', '.join(hosts)}")
        return host

    # ---- the lab ----

    def _status(self, document: Mapping[str, Any]) -> Condition:
        found = {
            **self.description(),
            "links": self._links.as_document(),
            "applications": self._applications.as_document(),
        }
        return lambda: found

    def _close(self, document: Mapping[str, Any]) -> Condition:
        self.is_closed = True
        return lambda: {}


def _deadline_s(document: Mapping[str, Any]) -> tuple[float, float]:
    """Return the time at which a request has waited too long, and for how long it waits."""
    within_s = float(document["within"])
    if not 0 <= within_s <= WAIT_S_MAX:
        raise OptionError(f"within: expected 0 to {WAIT_S_MAX:g} seconds, found {within_s:g}")
    return time.monotonic() + within_s, within_s


def _whole(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise OptionError(f"{name}: expected {least} to {most}, found {str(value)[:80]!r}")
    return value


def _text(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"the request lacks {error}"
    return str(error)
