"""Events come at their moment, befall who is there, end in time, and are accounted for."""

import signal

import pytest

from windtunnel.harness.artifact.host.host_event import read_happened
from windtunnel.harness.orchestrate.processes.watch import RunFailed, Watched
from windtunnel.harness.orchestrate.run.host_events import HostEvents
from windtunnel.harness.scenario.schema.host_event import EventCase


class Process:
    def __init__(self, name, said):
        self.name, self._said = name, said

    def tell(self, number):
        self._said.append((self.name, signal.Signals(number).name))


class Hands:
    """A host `b` with a driver and a subscriber."""

    def __init__(self, tmp_path):
        self.said = []
        self.people = [
            Watched(f"b/{role}", Process(role, self.said), role, tmp_path / role)
            for role in ("driver", "subscriber")
        ]

    def on_host(self, host, *roles):
        return [each for each in self.people if host == "b" and each.role in roles]

    def kill(self, victim):
        self.said.append((victim.role, "kill"))

    def restart(self, victim):
        self.said.append((victim.role, "restart"))


@pytest.fixture
def hands(tmp_path):
    return Hands(tmp_path)


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
def test_a_pause_comes_when_a_stream_has_come_so_far_and_goes(hands, clock, trigger, before, then):
    events = HostEvents([event(trigger)], hands)
    events.look(*before)
    assert hands.said == []
    events.look(*then)
    assert hands.said == [("driver", "SIGSTOP")]
    assert events.is_under_way
    clock.now_s += 0.99
    events.look(*then)
    assert events.patience_s(0.05) == pytest.approx(0.01)
    assert len(hands.said) == 1
    clock.now_s += 0.01
    events.look(*then)
    assert hands.said[1:] == [("driver", "SIGCONT")]
    assert not events.is_under_way
    assert events.patience_s(0.05) == 0.05
    events.look(10**9, 10**9)
    assert len(hands.said) == 2


def test_time_counts_from_the_first_message(hands, clock):
    events = HostEvents([event("after", 2 * 10**9)], hands)
    clock.now_s += 10
    events.look(0, 0)
    clock.now_s += 10
    events.look(1, 0)
    clock.now_s += 1.9
    events.look(1, 0)
    assert hands.said == []
    clock.now_s += 0.2
    events.look(1, 0)
    assert hands.said == [("driver", "SIGSTOP")]


def test_applications_stand_still_before_their_driver_and_go_on_after_it(hands, clock):
    events = HostEvents([event(process="all")], hands)
    events.look(0, 100)
    clock.now_s += 1
    events.look(0, 100)
    assert [name for name, _ in hands.said] == ["subscriber", "driver", "driver", "subscriber"]


def test_who_is_killed_is_started_anew(hands, clock, tmp_path):
    events = HostEvents([event(action="kill")], hands)
    events.look(0, 100)
    assert hands.said == [("driver", "kill")]
    clock.now_s += 1
    events.look(0, 100)
    assert hands.said[1:] == [("driver", "restart")]
    events.close(tmp_path / "events.json")
    (found,) = read_happened(tmp_path / "events.json")
    assert (found.id, found.host, found.action) == ("kill-100", "b", "kill")
    assert found.processes == ["driver"]
    assert found.ended_ns - found.began_ns == 10**9


def test_an_event_that_never_came_is_told(hands, clock, tmp_path):
    events = HostEvents([event(at=100), event(at=200)], hands)
    events.look(0, 150)
    with pytest.raises(RunFailed, match="over before its time: pause-200") as raised:
        events.require_all_came()
    assert not raised.value.ours
    events.close(tmp_path / "events.json")
    assert [each.id for each in read_happened(tmp_path / "events.json")] == ["pause-100"]


def test_nobody_is_left_standing_still(hands, clock, tmp_path):
    events = HostEvents([event()], hands)
    events.look(0, 100)
    events.close(tmp_path / "events.json")
    assert hands.said == [("driver", "SIGSTOP"), ("driver", "SIGCONT")]
    assert not events.is_under_way


def test_a_run_without_events_leaves_no_account(hands, tmp_path):
    HostEvents([], hands).close(tmp_path / "events.json")
    assert not (tmp_path / "events.json").exists()
