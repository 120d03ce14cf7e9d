"""The contract of images, checked with a simulated lab and simulated images."""

import json
import time
from dataclasses import asdict

import pytest

from windtunnel.harness.capture.cnc_watch import CncSight
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.subjects import image_contract, peer_check
from windtunnel.harness.orchestrate.subjects.peer_check import PROMISES, check

STEPS = [each.step for each in PROMISES]
GOOD = CncSight(version=2 << 8, client_liveness_ns=7_000_000_000)


class FakeImage:
    """A container of an image, whose behaviour a test chooses."""

    name = "a/driver"

    def __init__(self, request, code=None, after_term=0, problem=("", "")):
        self.request, self._code, self._after_term, self._problem = (
            request,
            code,
            after_term,
            problem,
        )

    def poll(self):
        return self._code

    def wait(self, timeout_s):
        return self._code

    def terminate(self):
        self._code = self._after_term

    def kill(self):
        self._code = -9

    def tail(self, lines=5):
        return "hello"

    def problem(self):
        return self._problem


class FakeLab:
    """A lab whose hosts read a driver's cnc.dat as a test chooses."""

    def __init__(self, readings, first, second):
        self._readings, self._images = readings, {"a": first, "b": second}
        self.is_down, self.requests = False, {}

    def up(self):
        pass

    def down(self):
        self.is_down = True

    def python(self, place):
        return "python"

    def shared_memory(self, host):
        return "/dev/shm/lab"

    def spawn(self, place, argv, *, env=None, log):
        assert argv[-2:] == ["--aeron-dir", "/dev/shm/lab/aeron"]
        log.write_text("".join(json.dumps(asdict(each)) + "\n" for each in self._readings))
        return FakeImage(None)

    def start_application(self, name, request):
        self.requests[name] = request
        return FakeImage(request, **self._images[name.partition("/")[0]])

    def neighbor(self, host):
        raise NotImplementedError

    outside = build_image = neighbor


@pytest.fixture
def checked(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_check, "HEARTBEAT_WITHIN_S", 0.5)
    monkeypatch.setattr(peer_check, "STOP_WITHIN_S", 0.05)
    monkeypatch.setattr(image_contract, "kind_of", lambda image, fidelity: ("aeron-c", ""))

    def play(readings, first=None, second=None):
        lab = FakeLab(readings, first or {}, {"code": 127} if second is None else second)
        monkeypatch.setattr(peer_check.labs, "make", lambda *_, **__: lab)
        steps = check("example/driver:1", tmp_path, within_s=0.1)
        assert lab.is_down
        return steps, lab

    return play


def beats(**changed):
    """Return readings of a cnc.dat: first none, then two with a heartbeat."""
    now_ms = int(time.time() * 1000)
    return [
        CncSight("cnc.dat does not exist"),
        *(CncSight(**{**asdict(GOOD), "heartbeat_ms": ms, **changed}) for ms in (now_ms, now_ms)),
    ]


@pytest.fixture
def advancing(monkeypatch):
    """Let each reading of a heartbeat be later than the previous one."""
    newest = peer_check.CheckedImage._newest

    def one_more(self, seen):
        found = newest(self, seen)
        return CncSight(**{**asdict(found), "heartbeat_ms": found.heartbeat_ms + 1})

    monkeypatch.setattr(peer_check.CheckedImage, "_newest", one_more)


def test_an_image_that_keeps_the_contract_passes_every_step(checked, advancing):
    steps, lab = checked(beats())
    assert [(each.promise.step, each.outcome) for each in steps] == [(x, "kept") for x in STEPS]
    first, second = lab.requests["a/driver"], lab.requests["b/driver"]
    assert first.env["AERON_DIR"] == "/dev/shm/lab/aeron"
    assert first.env["AERON_CLIENT_LIVENESS_TIMEOUT"] == "7s"
    versions = [each.env["WINDTUNNEL_CONTRACT"] for each in (first, second)]
    assert versions == ["1", "0"]
    assert (first.image, first.work, first.scenario) == ("example/driver:1", None, None)
    document = peer_check.document_of("example/driver:1", steps)
    assert document["kept"]
    assert [each["step"] for each in document["steps"]] == STEPS


LATE = [CncSight("cnc.dat does not exist")]
CASES = {
    "ends": (LATE, {"code": 3}, None, "start", "it ended with exit code 3; the last lines of"),
    "killed": (LATE, {"code": -9}, None, "start", "signal 9 ended it"),
    "floods": (
        *(LATE, {"problem": ("log-too-long", "the log exceeds 9 bytes")}, None),
        *("start", "the log exceeds 9 bytes"),
    ),
    "none": (LATE, {}, None, "cnc", "cnc.dat does not exist, after 0.1 s"),
    "nothing": ([], {}, None, "cnc", "the lab has not looked"),
    "version": ({"version": 1 << 8}, {}, None, "cnc", "a cnc.dat of version 0.1"),
    "environment": (
        *({"client_liveness_ns": 10**10}, {}, None),
        *("environment", "a client liveness timeout of 10 s in cnc.dat"),
    ),
    "stubborn": ({}, {"after_term": None}, None, "stop", "it still ran 0.05 s after SIGTERM"),
    "crashes": ({}, {"after_term": -11}, None, "stop", "signal 11 ended it"),
    "accepts": ({}, {}, {}, "not-supported", "it still ran after 0.1 s"),
    "refuses": ({}, {}, {"code": 1}, "not-supported", "it ended with exit code 1"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_broken_requirement_is_named(checked, advancing, name):
    readings, first, second, step, found = CASES[name]
    # A heartbeat is a current time.
    steps, _ = checked(beats(**readings) if isinstance(readings, dict) else readings, first, second)
    at = STEPS.index(step)
    assert [each.outcome for each in steps] == (
        ["kept"] * at + ["broken"] + ["not tested"] * (len(STEPS) - at - 1)
    )
    assert found in steps[at].found
    assert steps[at].promise.advice


def test_a_driver_without_a_heartbeat_is_named(checked):
    steps, _ = checked(beats(heartbeat_ms=0))
    broken = steps[STEPS.index("cnc")]
    assert (broken.outcome, broken.found[:24]) == ("broken", "cnc.dat has no heartbeat")


@pytest.mark.parametrize(("ms", "found"), [(5, "none since 5 ms"), (None, "s from now")])
def test_a_heartbeat_that_stands_still_or_is_of_another_time_is_named(
    checked, advancing, monkeypatch, ms, found
):
    if ms is not None:
        monkeypatch.undo()
        monkeypatch.setattr(peer_check, "HEARTBEAT_WITHIN_S", 0.5)
        monkeypatch.setattr(image_contract, "kind_of", lambda image, fidelity: ("aeron-c", ""))
    steps, _ = checked(beats(heartbeat_ms=5))
    broken = steps[STEPS.index("heartbeat")]
    assert broken.outcome == "broken"
    assert found in broken.found


def test_an_absent_image_starts_no_lab(tmp_path, monkeypatch):
    monkeypatch.setattr(image_contract, "kind_of", lambda *_: ("aeron-c", "there is no image"))
    steps = check("example/driver:1", tmp_path)
    assert [each.outcome for each in steps] == ["broken"] + ["not tested"] * 6
    assert steps[0].found == "there is no image"


def test_a_lab_that_fails_is_taken_down(checked, monkeypatch):
    def fail(self, name, request):
        raise LabError("the engine has died")

    monkeypatch.setattr(FakeLab, "start_application", fail)
    with pytest.raises(LabError, match="the engine has died"):
        checked(beats())
