"""Pauses and kills that a program begins and ends."""

import signal
from pathlib import Path

import pytest

from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.orchestrate.live import live_events
from windtunnel.harness.orchestrate.live.live_events import LiveEvents
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess


class Process:
    def __init__(self, name: str) -> None:
        self.name = name
        self.signals: list[int] = []
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


class Control:
    """The processes of one host."""

    def __init__(self) -> None:
        names = (("driver", "a/driver"), ("application", "a/application-feed"))
        self.processes = [
            WatchedProcess(name, Process(name), role, Path(f"{role}.log")) for role, name in names
        ]
        self.done: list[str] = []

    def on_host(self, host: str, *roles: str) -> list[WatchedProcess]:
        return [each for each in self.processes if each.role in roles and host == "a"]

    def kill(self, victim: WatchedProcess) -> None:
        self.done.append(f"kill {victim.name}")

    def restart(self, victim: WatchedProcess) -> None:
        self.done.append(f"restart {victim.name}")


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def events(control: Control) -> LiveEvents:
    return LiveEvents(control)


def test_an_event_lasts_until_the_program_ends_it(
    events: LiveEvents, control: Control, tmp_path: Path
) -> None:
    events.start("pause", "a", "feed")
    events.start("kill", "a")
    assert control.processes[1].process.signals == [signal.SIGSTOP]
    assert control.done == ["kill a/driver"]
    events.finish("resume", "a", "feed")
    events.finish("restart", "a")
    assert control.processes[1].process.signals == [signal.SIGSTOP, signal.SIGCONT]
    assert control.done == ["kill a/driver", "restart a/driver"]
    pause, kill = events.cases
    assert (pause.id, pause.action, pause.application) == ("pause-1", "pause", "feed")
    assert (kill.id, kill.action, kill.process) == ("kill-2", "kill", "driver")
    events.close(tmp_path / "host-events.json")
    found = read_applied_events(tmp_path / "host-events.json") or []
    for case, applied in zip((pause, kill), found, strict=True):
        assert applied.id == case.id
        assert applied.ended_ns - applied.began_ns == case.lasts_ns >= 0


def test_a_pause_ends_with_the_lab_and_a_kill_stays(
    events: LiveEvents, control: Control, tmp_path: Path
) -> None:
    events.start("pause", "a", "feed")
    events.start("kill", "a")
    events.close(tmp_path / "host-events.json")
    assert control.processes[1].process.signals[-1] == signal.SIGCONT
    assert control.done == ["kill a/driver"]
    found = read_applied_events(tmp_path / "host-events.json") or []
    assert all(each.ended_ns for each in found)


@pytest.mark.parametrize(
    ("end", "text"),
    [("resume", "the driver of host a was not paused"), ("restart", "was not killed")],
)
def test_only_an_event_that_began_can_end(events: LiveEvents, end: str, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        events.finish(end, "a")
    events.start("kill" if end == "resume" else "pause", "a")
    with pytest.raises(OptionError, match=text):
        events.finish(end, "a")


def test_a_process_that_does_not_run_cannot_be_paused(events: LiveEvents, control: Control) -> None:
    with pytest.raises(OptionError, match="application other is not running"):
        events.start("pause", "a", "other")
    control.processes[1].process.code = 0
    with pytest.raises(OptionError, match="application feed is not running"):
        events.start("kill", "a", "feed")
    assert events.cases == ()


def test_only_one_event_at_a_time(events: LiveEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    events.start("pause", "a")
    with pytest.raises(OptionError, match="the driver of host a is paused or killed already"):
        events.start("kill", "a")
    monkeypatch.setattr(live_events, "EVENTS_MAX", 1)
    with pytest.raises(OptionError, match="at most 1 pauses and kills"):
        events.start("pause", "a", "feed")
