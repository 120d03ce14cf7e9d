"""Repeats the recorded requests of a program to a live lab, in a replay.

    then    ask 1 ----> answer 1 -- 2 s -- ask 2 ----> answer 2 -- 0.5 s -- close
    now     ask 1 ----------> answer 1 -- 2 s -- ask 2 -> answer 2 -- 0.5 s -- close

A request is made when all those have been answered that had been answered before it then, and as
long after the last of these answers as then. So a partition lasts as long, and begins when the same
program is ready or the same position is reached, however fast this machine is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from windtunnel.harness.orchestrate.live.lab_record import RecordedRequest

NS_PER_S = 1e9


class RecordedRequests:
    """The recorded requests, in the place of the channel to a program."""

    def __init__(
        self,
        requests: Sequence[RecordedRequest],
        ended_ns: int,
        on_progress: Callable[[str], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._requests = requests
        self._ended_ns = ended_ns
        self._on_progress = on_progress
        self._clock_ns, self._sleep = clock_ns, sleep
        self._began_ns = clock_ns()
        self._next = 0
        self._answered_ns: dict[int, int] = {}
        self._same = 0
        self._first_other = ""

    @property
    def text(self) -> str:
        """How many requests were repeated, and the first that was answered otherwise."""
        summary = f"{self._same} of {len(self._requests)} requests repeated"
        return f"{summary}; {self._first_other}" if self._first_other else summary

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of requests that were repeated, and of all."""
        return self._same, len(self._requests)

    def send(self, document: dict[str, Any]) -> None:
        """Receive what the lab sends to its program."""
        if "ready" in document:
            self._began_ns = self._clock_ns()
        elif "progress" in document:
            self._on_progress(str(document["progress"]))
        elif 0 <= (index := document.get("id", 0) - 1) < len(self._requests):
            self._answered_ns[index] = self._clock_ns()
            self._compare(self._requests[index], str(document.get("error") or ""))

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return the next request if its time comes within a time."""
        due_ns = self._due_ns()
        left_s = timeout_s if due_ns is None else (due_ns - self._clock_ns()) / NS_PER_S
        self._sleep(max(0.0, min(left_s, timeout_s)))
        if due_ns is None or left_s > timeout_s:
            return []
        self._next += 1
        index = self._next - 1
        if index == len(self._requests):
            return [{"id": self._next, "do": "close"}]
        return [{**self._requests[index].request, "id": self._next}]

    def _due_ns(self) -> int | None:
        """Return the time of the next request, or None if it waits for answers, or if there is
        none.
        """
        if self._next > len(self._requests):
            return None
        is_last = self._next == len(self._requests)
        sent_ns = self._ended_ns if is_last else self._requests[self._next].sent_ns
        then_ns, now_ns = 0, self._began_ns
        for index, each in enumerate(self._requests[: self._next]):
            if each.answered_ns is None or each.answered_ns > sent_ns:
                continue
            if index not in self._answered_ns:
                return None
            then_ns = max(then_ns, each.answered_ns)
            now_ns = max(now_ns, self._answered_ns[index])
        return now_ns + max(0, sent_ns - then_ns)

    def _compare(self, request: RecordedRequest, refused: str) -> None:
        if bool(refused) == bool(request.refused):
            self._same += 1
        elif not self._first_other:
            what = f"{request.do} {self._object(request)}".strip()
            then = f"refused: {request.refused}" if request.refused else "fulfilled"
            now = f"refused: {refused}" if refused else "fulfilled"
            self._first_other = f"the first with another answer is {what!r}: it was {then}, and "
            self._first_other += f"is {now}"

    @staticmethod
    def _object(request: RecordedRequest) -> str:
        found = request.request
        keys = ("name", "application", "host", "between", "counter")
        return " ".join(str(found[key]) for key in keys if key in found)
