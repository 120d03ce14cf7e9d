"""Requests of a program, and when they are answered."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.harness.middlebox.synthetic_case import case
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.live import live_counters, requests
from windtunnel.harness.orchestrate.live.live_links import LiveLinks
from windtunnel.harness.orchestrate.live.requests import Requests

WAIT = {"id": 5, "do": "counter", "host": "a", "counter": "sub-pos", "within": 10}


class Lab:
    """The lab that requests change, and the responses that were sent."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[dict[str, Any]] = []
        self.asked = 0
        self.applied = 0
        self.code: int | None = None
        self.codes: list[int] = []
        self.failures = ""
        process = SimpleNamespace(
            poll=lambda: self.code, problem=lambda: ("", ""), tail=lambda lines: "last words"
        )
        started = SimpleNamespace(process=process, watched=SimpleNamespace(name="a/x"))
        self.requests = Requests(
            spec=SimpleNamespace(folder=RunDir(folder)),
            case=case(),
            processes=SimpleNamespace(lab=None, directory=lambda host: f"/dev/shm/{host}"),
            applications=SimpleNamespace(
                newest=lambda name: started,
                expect_exit=lambda name, code: self.codes.append(code),
                as_document=list,
                failures=lambda apart_from: self.failures,
            ),
            events=None,
            links=LiveLinks(case(), []),
            requester=SimpleNamespace(
                request=self._request, is_applied=lambda number: number <= self.applied
            ),
            send=self.sent.append,
        )

    def _request(self, impairments: object) -> int:
        self.asked += 1
        return self.asked


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_a_change_of_a_link_is_answered_when_the_relay_has_applied_it(lab: Lab) -> None:
    for number in (1, 2):
        lab.requests.begin(
            {"id": number, "do": "link", "action": "partition", "between": ["a", "b"]}
        )
    lab.requests.update()
    assert lab.sent == []
    lab.applied = 1
    lab.requests.update()
    assert lab.sent == [{"id": 1, "ok": {}}]
    lab.applied = 2
    lab.requests.update()
    assert [each["id"] for each in lab.sent] == [1, 2]


def test_a_program_that_ends_is_reported_with_its_code(lab: Lab) -> None:
    lab.requests.begin({"id": 3, "do": "wait", "application": "x", "within": 10, "code": 4})
    lab.code = 4
    lab.requests.update()
    assert lab.sent == [{"id": 3, "ok": {"code": 4, "log": "last words"}}]
    assert lab.codes == [4]


def test_a_wait_ends_with_its_time(lab: Lab) -> None:
    lab.requests.begin({"id": 3, "do": "wait", "application": "x", "within": 0})
    lab.requests.update()
    text = "a/x has not ended after 0 s; last log lines: last words"
    assert lab.sent == [{"id": 3, "error": text}]


def test_a_failure_that_happened_meanwhile_is_reported_first(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_counters, "largest", lambda counters, selected: 4)
    lab.failures = "a/feed ended with exit code 1"
    lab.requests.begin({"id": 3, "do": "wait", "application": "x", "within": 0})
    lab.requests.begin({**WAIT, "at_least": 5, "within": 0})
    lab.requests.update()
    assert [each["id"] for each in lab.sent] == [3, 5]
    for each in lab.sent:
        assert each["error"].startswith("a/feed ended with exit code 1; ")


def test_a_counter_is_waited_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([None, 4, 7])
    monkeypatch.setattr(live_counters, "largest", lambda counters, selected: next(values))
    lab.requests.begin({**WAIT, "at_least": 5})
    lab.requests.update()
    assert lab.sent == []
    lab.requests.update()
    assert lab.sent == [{"id": 5, "ok": {"value": 7}}]


def test_a_counter_that_stays_below_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_counters, "largest", lambda counters, selected: 4)
    lab.requests.begin({**WAIT, "at_least": 5, "within": 0, "stream": 7})
    lab.requests.update()
    text = "sub-pos of stream 7 on host a has not reached 5 after 0 s: it is 4"
    assert lab.sent == [{"id": 5, "error": text}]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"do": "fly"}, "unknown request 'fly'"),
        ({"do": "link", "action": "heal"}, "the request lacks 'between'"),
        ({"do": "link", "action": "cut", "between": ["a", "b"]}, "expected impair, partition"),
        ({"do": "link", "action": "heal", "between": ["a", "c"]}, "there is no link a-c"),
        ({"do": "counters", "host": "c"}, "there is no host 'c': the hosts are a, b"),
        ({**WAIT, "at_least": "5"}, "at_least: expected"),
        ({**WAIT, "at_least": 5, "within": -1}, "within: expected 0 to"),
        ({**WAIT, "at_least": 5, "within": "soon"}, "could not convert"),
        ({"do": "event", "action": "pause", "host": "c"}, "there is no host 'c'"),
        ({"do": "event", "action": "melt", "host": "a"}, "expected pause, resume, kill or restart"),
        ({"do": "wait", "application": "x", "within": 1, "code": 256}, "code: expected 0 to 255"),
    ],
)
def test_a_wrong_request_is_refused_and_the_lab_goes_on(
    lab: Lab, request_: dict[str, Any], text: str
) -> None:
    lab.requests.begin({**request_, "id": 9})
    (answer,) = lab.sent
    assert answer["id"] == 9
    assert text in answer["error"]
    assert not lab.requests.is_closed


def test_a_request_without_a_number_cannot_be_answered(lab: Lab) -> None:
    lab.requests.begin({"do": "close"})
    assert (lab.sent, lab.requests.is_closed) == ([], False)


def test_the_status_has_links_and_applications(lab: Lab) -> None:
    lab.requests.begin({"id": 1, "do": "status"})
    found = lab.sent[0]["ok"]
    assert set(found["addresses"]) == {"a", "b"}
    assert [each["impairments"] for each in found["links"]] == [{}, {}]
    assert found["applications"] == []


def test_close_ends_the_lab(lab: Lab) -> None:
    lab.requests.begin({"id": 1, "do": "close"})
    assert lab.requests.is_closed
    assert lab.sent == [{"id": 1, "ok": {}}]


def test_a_relay_that_does_not_answer_is_an_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "CHANGE_TIMEOUT_S", -1.0)
    lab.requests.begin({"id": 1, "do": "link", "action": "heal", "between": ["a", "b"]})
    assert "the relay has not changed the link" in lab.sent[0]["error"]
