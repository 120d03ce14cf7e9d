"""Host events begin when triggered, affect running processes, end in time, and are recorded."""

import signal

import pytest

from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.scenario.schema.host_event import EventCase


class Process:
    def __init__(self, name, actions):
        self.name, self._actions = name, actions

    def poll(self):
        return None

    def send_signal(self, number):
        self._actions.append((self.name, signal.Signals(number).name))


class FakeControl:
    """A host `b` with a driver and a subscriber."""

    def __init__(self, tmp_path):
        self.actions = []
        self.processes = [
            WatchedProcess(f"b/{role}", Process(role, self.actions), role, tmp_path / role)
            for role in ("driver", "subscriber")
        ]

    def on_host(self, host, *roles):
        return [each for each in self.processes if host == "b" and each.role in roles]

    def kill(self, victim):
        self.actions.append((victim.role, "kill"))

    def restart(self, victim):
        self.actions.append((victim.role, "restart"))


@pytest.fixture
def control(tmp_path):
    return FakeControl(tmp_path)


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now_s = 1000.0

        def monotonic(self):
            return self.now_s

        def time_ns(self):
            return int(self.now_s * 1e9)

    still = Clock()
    monkeypatch.setattr("windtunnel.harness.orchestrate.run.host_events.time", still)
    return still


def event(
    trigger="delivered", at=100, *, process="driver", action="pause", lasts_ns=10**9, host="b"
):
    return EventCase(
        id=f"{action}-{at}", host=host, process=process, trigger=trigger, at=at, action=action,
        lasts_ns=lasts_ns,
    )  # fmt: skip


@pytest.mark.parametrize(("trigger", "before", "then"), [
    ("delivered", (500, 99), (500, 100)),
    ("published", (99, 0), (100, 0)),
])  # fmt: skip
def test_a_pause_begins_at_a_stream_position_and_ends(control, clock, trigger, before, then):
    events = HostEvents([event(trigger)], control)
    events.update(*before)
    assert control.actions == []
    events.update(*then)
    assert control.actions == [("driver", "SIGSTOP")]
    assert events.is_active
    clock.now_s += 0.99
    events.update(*then)
    assert events.poll_delay_s(0.05) == pytest.approx(0.01)
    assert len(control.actions) == 1
    clock.now_s += 0.01
    events.update(*then)
    assert control.actions[1:] == [("driver", "SIGCONT")]
    assert not events.is_active
    assert events.poll_delay_s(0.05) == 0.05
    events.update(10**9, 10**9)
    assert len(control.actions) == 2


def test_time_counts_from_the_first_message(control, clock):
    events = HostEvents([event("after", 2 * 10**9)], control)
    clock.now_s += 10
    events.update(0, 0)
    clock.now_s += 10
    events.update(1, 0)
    clock.now_s += 1.9
    events.update(1, 0)
    assert control.actions == []
    clock.now_s += 0.2
    events.update(1, 0)
    assert control.actions == [("driver", "SIGSTOP")]


def test_applications_are_paused_before_their_driver_and_resumed_after_it(control, clock):
    events = HostEvents([event(process="all")], control)
    events.update(0, 100)
    clock.now_s += 1
    events.update(0, 100)
    assert [name for name, _ in control.actions] == ["subscriber", "driver", "driver", "subscriber"]


def test_a_killed_process_is_restarted(control, clock, tmp_path):
    events = HostEvents([event(action="kill")], control)
    events.update(0, 100)
    assert control.actions == [("driver", "kill")]
    clock.now_s += 1
    events.update(0, 100)
    assert control.actions[1:] == [("driver", "restart")]
    events.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert (found.id, found.host, found.action) == ("kill-100", "b", "kill")
    assert found.processes == ["driver"]
    assert found.ended_ns - found.began_ns == 10**9


def test_an_event_that_was_never_triggered_is_reported(control, clock, tmp_path):
    events = HostEvents([event(at=100), event(at=200)], control)
    events.update(0, 150)
    with pytest.raises(RunFailed, match="before these events were triggered: pause-200") as raised:
        events.require_all_triggered()
    assert not raised.value.harness_fault
    events.close(tmp_path / "events.json")
    assert [each.id for each in read_applied_events(tmp_path / "events.json")] == ["pause-100"]


def test_no_process_stays_paused(control, clock, tmp_path):
    events = HostEvents([event()], control)
    events.update(0, 100)
    events.close(tmp_path / "events.json")
    assert control.actions == [("driver", "SIGSTOP"), ("driver", "SIGCONT")]
    assert not events.is_active


def test_a_run_without_events_writes_no_file(control, tmp_path):
    HostEvents([], control).close(tmp_path / "events.json")
    assert not (tmp_path / "events.json").exists()


class Links:
    """Links that record the events to apply."""

    def __init__(self, actions):
        self._actions = actions

    def begin(self, event):
        self._actions.append((event.id, "begin"))

    def end(self, event):
        self._actions.append((event.id, "end"))


@pytest.mark.parametrize("action", ["partition", "impair"])
def test_links_are_changed_and_restored(control, clock, tmp_path, action):
    partition = event("after", 0, action=action, process="all")
    events = HostEvents([partition], control, Links(control.actions))
    events.begin()
    events.update(0, 0)
    assert (control.actions, events.is_active) == ([(f"{action}-0", "begin")], True)
    clock.now_s += 1
    events.update(0, 0)
    assert (control.actions[1:], events.is_active) == ([(f"{action}-0", "end")], False)
    events.close(tmp_path / "events.json")
    (applied,) = read_applied_events(tmp_path / "events.json")
    assert (applied.action, applied.processes) == (action, [])
    assert applied.ended_ns - applied.began_ns == 10**9


@pytest.mark.parametrize("action", ["pause", "kill"])
def test_an_application_that_has_ended_is_left_alone(control, clock, tmp_path, action):
    ended = Process("feed", control.actions)
    ended.poll = lambda: 0
    control.processes.append(WatchedProcess("b/application-feed", ended, "application", tmp_path))
    events = HostEvents([event("after", 0, action=action, process="application")], control)
    events.begin()
    events.update(0, 0)
    clock.now_s += 1
    events.update(0, 0)
    assert control.actions == []


def test_a_drawn_event_need_not_happen(control, clock):
    drawn = event("after", 10**12).model_copy(update={"drawn": True})
    HostEvents([drawn], control).require_all_triggered()
    with pytest.raises(RunFailed, match="pause-1000000000000"):
        HostEvents([event("after", 10**12)], control).require_all_triggered()
