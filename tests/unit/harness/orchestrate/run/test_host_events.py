"""Events come at their moment, befall who is there, end in time, and are accounted for."""

import signal

import pytest

from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.scenario.schema.host_event import EventCase


class Process:
    def __init__(self, name, said):
        self.name, self._said = name, said

    def poll(self):
        return None

    def send_signal(self, number):
        self._said.append((self.name, signal.Signals(number).name))


class FakeControl:
    """A host `b` with a driver and a subscriber."""

    def __init__(self, tmp_path):
        self.said = []
        self.people = [
            WatchedProcess(f"b/{role}", Process(role, self.said), role, tmp_path / role)
            for role in ("driver", "subscriber")
        ]

    def on_host(self, host, *roles):
        return [each for each in self.people if host == "b" and each.role in roles]

    def kill(self, victim):
        self.said.append((victim.role, "kill"))

    def restart(self, victim):
        self.said.append((victim.role, "restart"))


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
def test_a_pause_comes_when_a_stream_has_come_so_far_and_goes(
    control, clock, trigger, before, then
):
    events = HostEvents([event(trigger)], control)
    events.update(*before)
    assert control.said == []
    events.update(*then)
    assert control.said == [("driver", "SIGSTOP")]
    assert events.is_active
    clock.now_s += 0.99
    events.update(*then)
    assert events.poll_delay_s(0.05) == pytest.approx(0.01)
    assert len(control.said) == 1
    clock.now_s += 0.01
    events.update(*then)
    assert control.said[1:] == [("driver", "SIGCONT")]
    assert not events.is_active
    assert events.poll_delay_s(0.05) == 0.05
    events.update(10**9, 10**9)
    assert len(control.said) == 2


def test_time_counts_from_the_first_message(control, clock):
    events = HostEvents([event("after", 2 * 10**9)], control)
    clock.now_s += 10
    events.update(0, 0)
    clock.now_s += 10
    events.update(1, 0)
    clock.now_s += 1.9
    events.update(1, 0)
    assert control.said == []
    clock.now_s += 0.2
    events.update(1, 0)
    assert control.said == [("driver", "SIGSTOP")]


def test_applications_stand_still_before_their_driver_and_go_on_after_it(control, clock):
    events = HostEvents([event(process="all")], control)
    events.update(0, 100)
    clock.now_s += 1
    events.update(0, 100)
    assert [name for name, _ in control.said] == ["subscriber", "driver", "driver", "subscriber"]


def test_who_is_killed_is_started_anew(control, clock, tmp_path):
    events = HostEvents([event(action="kill")], control)
    events.update(0, 100)
    assert control.said == [("driver", "kill")]
    clock.now_s += 1
    events.update(0, 100)
    assert control.said[1:] == [("driver", "restart")]
    events.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert (found.id, found.host, found.action) == ("kill-100", "b", "kill")
    assert found.processes == ["driver"]
    assert found.ended_ns - found.began_ns == 10**9


def test_an_event_that_never_came_is_reported(control, clock, tmp_path):
    events = HostEvents([event(at=100), event(at=200)], control)
    events.update(0, 150)
    with pytest.raises(RunFailed, match="before these events were triggered: pause-200") as raised:
        events.require_all_triggered()
    assert not raised.value.harness_fault
    events.close(tmp_path / "events.json")
    assert [each.id for each in read_applied_events(tmp_path / "events.json")] == ["pause-100"]


def test_no_one_is_left_standing_still(control, clock, tmp_path):
    events = HostEvents([event()], control)
    events.update(0, 100)
    events.close(tmp_path / "events.json")
    assert control.said == [("driver", "SIGSTOP"), ("driver", "SIGCONT")]
    assert not events.is_active


def test_a_run_without_events_leaves_no_account(control, tmp_path):
    HostEvents([], control).close(tmp_path / "events.json")
    assert not (tmp_path / "events.json").exists()


class Links:
    """Links that note what is asked of them."""

    def __init__(self, said):
        self._said = said

    def begin(self, event):
        self._said.append((event.id, "begin"))

    def end(self, event):
        self._said.append((event.id, "end"))


@pytest.mark.parametrize("action", ["partition", "impair"])
def test_links_are_changed_and_are_as_before_again(control, clock, tmp_path, action):
    partition = event("after", 0, action=action, process="all")
    events = HostEvents([partition], control, Links(control.said))
    events.begin()
    events.update(0, 0)
    assert (control.said, events.is_active) == ([(f"{action}-0", "begin")], True)
    clock.now_s += 1
    events.update(0, 0)
    assert (control.said[1:], events.is_active) == ([(f"{action}-0", "end")], False)
    events.close(tmp_path / "events.json")
    (applied,) = read_applied_events(tmp_path / "events.json")
    assert (applied.action, applied.processes) == (action, [])
    assert applied.ended_ns - applied.began_ns == 10**9


@pytest.mark.parametrize("action", ["pause", "kill"])
def test_an_application_that_has_ended_is_left_alone(control, clock, tmp_path, action):
    ended = Process("feed", control.said)
    ended.poll = lambda: 0
    control.people.append(WatchedProcess("b/application-feed", ended, "application", tmp_path))
    events = HostEvents([event("after", 0, action=action, process="application")], control)
    events.begin()
    events.update(0, 0)
    clock.now_s += 1
    events.update(0, 0)
    assert control.said == []


def test_a_drawn_event_need_not_happen(control, clock):
    drawn = event("after", 10**12).model_copy(update={"drawn": True})
    HostEvents([drawn], control).require_all_triggered()
    with pytest.raises(RunFailed, match="pause-1000000000000"):
        HostEvents([event("after", 10**12)], control).require_all_triggered()
