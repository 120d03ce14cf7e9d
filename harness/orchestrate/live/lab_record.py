"""lab-requests.json: the requests of a program to a live lab, so that a replay can repeat them.

    options   start reader   start feed   partition a-b   heal a-b   close
      0 s        0.1 s          1.2 s         3.0 s         5.0 s     9.1 s

Each request has the times at which it was made and answered, after the lab was ready. Requests that
change nothing and wait for nothing are left out. Working folders and search paths are those of the
program's machine, and are left out, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.scenario.resolved.stored_part import StoredPart
from windtunnel.harness.scenario.schema.part import Part

RECORDED_MAX = 4_000
"""Maximum number of requests. A lab with more of them cannot be replayed."""
REFUSAL_LENGTH_MAX = 1_000
TIME_MAX_NS = (1 << 63) - 1
START = "start"
KEYS: Mapping[str, tuple[str, ...]] = {
    START: (
        *("name", "on", "command", "image", "limits", "env", "driver", "ready", "stop"),
        "expect",
    ),
    "wait": ("application", "code", "within"),
    "stop": ("application",),
    "event": ("action", "application", "host"),
    "link": ("action", "between", "to", "impairments"),
    # Without the session, which has another id in each run.
    "counter": ("host", "counter", "at_least", "stream", "within"),
}
"""The requests that are recorded, and what of them."""


class LabOptions(Part):
    """The options with which a lab was opened."""

    name: str = "lab"
    about: str = ""
    seed: int = 0
    hosts: tuple[str, ...] = ()
    links: tuple[dict[str, Any], ...] = ()
    observe: tuple[dict[str, Any], ...] | str = ()
    timeouts: dict[str, str] = Field(default_factory=dict)
    driver: dict[str, str] = Field(default_factory=dict)
    drivers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    fidelity: str = NETNS


class RecordedRequest(Part):
    """One request, and how it was answered."""

    sent_ns: int = Field(ge=0, le=TIME_MAX_NS)
    answered_ns: int | None = Field(default=None, ge=0, le=TIME_MAX_NS)
    """The time of the answer, or None if the lab ended before."""
    refused: str = Field(default="", max_length=REFUSAL_LENGTH_MAX)
    """Why it was refused, or an empty string."""
    request: dict[str, Any]

    @property
    def do(self) -> str:
        return str(self.request.get("do"))

    @property
    def application(self) -> str:
        """The application that it starts, or an empty string."""
        return str(self.request.get("name") or "") if self.do == START else ""


class LabRecord(StoredPart):
    """The file."""

    schema_name: Literal["windtunnel-lab-requests/1"] = Field(
        default="windtunnel-lab-requests/1", alias="schema"
    )
    options: LabOptions
    requests: tuple[RecordedRequest, ...] = Field(default=(), max_length=RECORDED_MAX)
    left_out: int = Field(default=0, ge=0, le=TIME_MAX_NS)
    """Number of requests that were too many to be recorded."""
    ended_ns: int = Field(default=0, ge=0, le=TIME_MAX_NS)
    """The time at which the program closed the lab."""


class RequestRecorder:
    """Records the requests of a lab while it is open."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        known = {key: options[key] for key in LabOptions.model_fields if key in options}
        self._options = LabOptions.model_validate(known)
        self._began_ns = time.monotonic_ns()
        self._ended_ns = 0
        self._requests: list[RecordedRequest] = []
        self._left_out = 0
        self._index_of: dict[Any, int] = {}
        """The places of the requests that wait for their answers, by number."""

    def begin(self) -> None:
        """Note that the lab is ready."""
        self._began_ns = time.monotonic_ns()

    def asked(self, document: Mapping[str, Any]) -> None:
        """Record a request."""
        keys = KEYS.get(str(document.get("do")))
        if keys is None:
            return
        if len(self._requests) >= RECORDED_MAX:
            self._left_out += 1
            return
        kept = {key: document[key] for key in ("do", *keys) if document.get(key) is not None}
        self._index_of[document.get("id")] = len(self._requests)
        self._requests.append(RecordedRequest(sent_ns=self._now_ns(), request=kept))

    def named(self, application_id: str) -> None:
        """Record the name under which the newest request has started an application."""
        if self._requests and self._requests[-1].do == START and not self._left_out:
            named = {**self._requests[-1].request, "name": application_id}
            self._update(len(self._requests) - 1, request=named)

    def answered(self, document: Mapping[str, Any]) -> None:
        """Record an answer."""
        index = self._index_of.pop(document.get("id"), None)
        if index is not None:
            refused = str(document.get("error") or "")[:REFUSAL_LENGTH_MAX]
            self._update(index, answered_ns=self._now_ns(), refused=refused)

    def end(self) -> None:
        """Note that the program has closed the lab."""
        self._ended_ns = self._now_ns()

    def write(self, path: Path) -> None:
        """Write the file."""
        LabRecord(
            options=self._options,
            requests=tuple(self._requests),
            left_out=self._left_out,
            ended_ns=self._ended_ns,
        ).write(path)

    def _update(self, index: int, **changed: Any) -> None:
        self._requests[index] = self._requests[index].model_copy(update=changed)

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns
