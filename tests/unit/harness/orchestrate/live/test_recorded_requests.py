"""A program's requests to a lab are recorded, and repeated at the same times."""

from pathlib import Path
from typing import Any

import pytest

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.orchestrate.live import lab_record
from windtunnel.harness.orchestrate.live.lab_record import (
    LabOptions,
    LabRecord,
    RecordedRequest,
    RequestRecorder,
)
from windtunnel.harness.orchestrate.live.recorded_requests import RecordedRequests

S = 1_000_000_000


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now_ns = 50 * S

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * S)


def request(sent_s: float, answered_s: float | None, refused: str = "", **what: Any) -> Any:
    answered = None if answered_s is None else round(answered_s * S)
    return RecordedRequest(
        sent_ns=round(sent_s * S), answered_ns=answered, refused=refused, request=what
    )


class Replay:
    """A lab that answers each request after a given time."""

    def __init__(self, *requests: Any, ended_s: float) -> None:
        self.clock = Clock()
        self.again = RecordedRequests(
            requests,
            round(ended_s * S),
            lambda text: None,
            clock_ns=lambda: self.clock.now_ns,
            sleep=self.clock.sleep,
        )
        self.times_s: dict[str, float] = {}

    def run(self, answers_after_s: dict[str, float], errors: dict[str, str] | None = None) -> None:
        self.clock.sleep(3.0)
        self.again.send({"ready": {}})
        began_ns = self.clock.now_ns
        waiting: dict[int, tuple[int, str]] = {}
        while "close" not in self.times_s:
            for document in self.again.receive(0.02):
                name = str(document.get("name", document["do"]))
                self.times_s[name] = (self.clock.now_ns - began_ns) / S
                due_ns = self.clock.now_ns + round(answers_after_s.get(name, 0) * S)
                waiting[document["id"]] = (due_ns, name)
            for number, (due_ns, name) in list(waiting.items()):
                if self.clock.now_ns >= due_ns:
                    del waiting[number]
                    error = (errors or {}).get(name)
                    self.again.send({"id": number, **({"error": error} if error else {"ok": {}})})


def test_requests_are_repeated_with_the_same_delays_after_responses() -> None:
    replay = Replay(
        request(0.1, 1.1, do="start", name="reader"),
        request(3.1, 3.2, do="link"),
        request(4.0, 4.0, do="event"),
        ended_s=4.5,
    )
    # The reader is ready 4 s later than in the recorded run, and so the partition is 4 s later too.
    replay.run({"reader": 5.0, "link": 0.1})
    at = replay.times_s
    assert at["reader"] == pytest.approx(0.1, abs=0.03)
    assert at["link"] == pytest.approx(0.1 + 5.0 + 2.0, abs=0.06)
    assert at["event"] - at["link"] == pytest.approx(0.9, abs=0.06)
    assert at["close"] - at["event"] == pytest.approx(0.5, abs=0.06)
    assert replay.again.text == "3 of 3 requests repeated"


def test_a_request_does_not_wait_for_one_that_was_answered_later() -> None:
    replay = Replay(
        request(0.0, 9.0, do="wait", name="wait"), request(1.0, 1.1, do="link"), ended_s=9.5
    )
    replay.run({"wait": 20.0, "link": 0.1})
    assert replay.times_s["link"] == pytest.approx(1.0, abs=0.03)
    assert replay.times_s["close"] == pytest.approx(20.5, abs=0.06)


def test_a_request_that_was_never_answered_delays_nothing() -> None:
    replay = Replay(request(0.0, None, do="wait", name="wait"), ended_s=2.0)
    replay.run({"wait": 99.0})
    assert replay.times_s["close"] == pytest.approx(2.0, abs=0.03)
    assert replay.again.counts == (0, 1)


def test_a_response_that_differs_is_reported() -> None:
    replay = Replay(
        request(0.0, 0.1, do="start", name="reader"),
        request(0.2, 0.3, refused="late", do="stop", application="reader"),
        ended_s=1.0,
    )
    replay.run({}, {"reader": "not ready"})
    assert replay.again.text == (
        "0 of 2 requests repeated; the first with another answer is 'start reader': "
        "it was fulfilled, and is refused: not ready"
    )


def test_requests_that_change_the_lab_or_wait_are_recorded(tmp_path: Path) -> None:
    recorder = RequestRecorder({"hosts": ["a", "b"], "out": "/x", "folder": "/y", "argv": []})
    recorder.begin()
    recorder.asked(
        {"id": 1, "do": "start", "on": "a", "command": ["x"], "folder": "/y", "variables": {}}
    )
    recorder.named("x")
    recorder.asked({"id": 2, "do": "counters", "host": "a"})
    recorder.asked(
        {"id": 3, "do": "counter", "host": "a", "counter": "sub-pos", "session": 7, "stream": None}
    )
    recorder.answered({"id": 3, "error": "late"})
    recorder.answered({"id": 1, "ok": {}})
    recorder.end()
    recorder.write(tmp_path / "lab-requests.json")
    found = LabRecord.read(tmp_path / "lab-requests.json")
    assert found is not None
    assert found.options == LabOptions(hosts=("a", "b"))
    first, second = found.requests
    assert first.request == {"do": "start", "on": "a", "command": ["x"], "name": "x"}
    assert first.application == "x"
    assert second.request == {"do": "counter", "host": "a", "counter": "sub-pos"}
    assert (first.refused, second.refused) == ("", "late")
    assert first.sent_ns <= second.sent_ns <= (second.answered_ns or 0)
    assert (second.answered_ns or 0) <= (first.answered_ns or 0) <= found.ended_ns


def test_the_record_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lab_record, "RECORDED_MAX", 2)
    recorder = RequestRecorder({})
    for number in range(5):
        recorder.asked({"id": number, "do": "stop", "application": "x"})
        recorder.answered({"id": number, "ok": {}})
    recorder.write(tmp_path / "x.json")
    found = LabRecord.read(tmp_path / "x.json")
    assert found is not None
    assert (len(found.requests), found.left_out) == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"schema": "windtunnel-lab-requests/1", "options": 3}',
        '{"schema": "windtunnel-lab-requests/1", "options": {"links": 3}}',
        '{"schema": "windtunnel-lab-requests/1", "options": {}, "requests": [{"sent_ns": -1}]}',
    ],
)
def test_a_record_from_an_untrusted_folder_is_validated(text: str, tmp_path: Path) -> None:
    file = tmp_path / "lab-requests.json"
    file.write_text(text)
    with pytest.raises(DocumentError, match=r"lab-requests\.json"):
        LabRecord.read(file)
