"""Events happen exactly at their moment, affect the programs then running, and are recorded."""

import pytest

from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.simulator.world.host_events import HostEvents

SECOND = 10**9


class Program:
    def __init__(self, role, said):
        self.role, self.name, self._said = role, f"b/{role}", said
        self.is_killed = False

    def pause(self):
        self._said.append((self.role, "pause"))

    def resume(self):
        self._said.append((self.role, "resume"))

    def kill(self):
        self.is_killed = True
        self._said.append((self.role, "kill"))


class Cast:
    """A host `b` with a driver and a subscriber, and a clock."""

    def __init__(self):
        self.said, self.now_ns = [], 1_000 * SECOND
        self.people = [Program(role, self.said) for role in ("driver", "subscriber")]

    def on_host(self, host, roles):
        return [each for each in self.people if host == "b" and each.role in roles]

    def replace(self, killed):
        self.said.append((killed.role, "replace"))


@pytest.fixture
def cast():
    return Cast()


def events(cast, *ordered):
    step_clock = lambda host, step_ns: cast.said.append((host, step_ns))  # noqa: E731
    return HostEvents(ordered, cast, lambda: cast.now_ns, None, step_clock)


def event(trigger="delivered", at=100, *, process="driver", action="pause", host="b"):
    return EventCase(
        id=f"{action}-{at}", host=host, process=process, trigger=trigger, at=at, action=action,
        lasts_ns=SECOND,
    )  # fmt: skip


@pytest.mark.parametrize(("trigger", "before", "then"), [
    ("delivered", (500, 99), (500, 100)),
    ("published", (99, 0), (100, 0)),
])  # fmt: skip
def test_a_pause_comes_when_a_stream_has_come_so_far_and_goes(cast, trigger, before, then):
    made = events(cast, event(trigger))
    made.look(*before)
    assert not made.is_open
    made.look(*then)
    assert cast.said == [("driver", "pause")]
    cast.now_ns += SECOND - 1
    made.look(*then)
    assert made.is_open
    cast.now_ns += 1
    made.look(*then)
    assert cast.said[1:] == [("driver", "resume")]
    assert not made.is_open
    made.look(10**9, 10**9)
    assert len(cast.said) == 2


def test_time_counts_from_the_first_message(cast):
    made = events(cast, event("after", 2 * SECOND))
    made.look(0, 0)
    cast.now_ns += 10 * SECOND
    made.look(1, 0)
    cast.now_ns += 2 * SECOND - 1
    made.look(1, 0)
    assert cast.said == []
    cast.now_ns += 1
    made.look(1, 0)
    assert cast.said == [("driver", "pause")]


def test_who_is_killed_is_followed_by_another(cast, tmp_path):
    made = events(cast, event(action="kill"))
    made.look(0, 100)
    cast.now_ns += SECOND
    made.look(0, 100)
    assert cast.said == [("driver", "kill"), ("driver", "replace")]
    made.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert (found.id, found.host, found.action) == ("kill-100", "b", "kill")
    assert found.processes == ["driver"]
    assert found.ended_ns - found.began_ns == SECOND


def test_all_that_are_meant_and_nobody_else(cast):
    made = events(cast, event(process="all"), event(at=101, host="a"))
    made.look(0, 101)
    assert cast.said == [("driver", "pause"), ("subscriber", "pause")]


def test_an_event_that_never_came_is_not_told_of(cast, tmp_path):
    made = events(cast, event(at=100), event(at=200))
    made.look(0, 150)
    made.close(tmp_path / "events.json")
    assert [each.id for each in read_applied_events(tmp_path / "events.json")] == ["pause-100"]


def test_nobody_is_left_standing_still_and_who_is_dead_stays_so(cast, tmp_path):
    made = events(cast, event(), event(at=99, action="kill", process="subscriber"))
    made.look(0, 100)
    made.close(tmp_path / "events.json")
    assert cast.said == [("driver", "pause"), ("subscriber", "kill"), ("driver", "resume")]
    ended_ns = {each.id: each.ended_ns for each in read_applied_events(tmp_path / "events.json")}
    assert ended_ns == {"pause-100": cast.now_ns, "kill-99": 0}


def test_a_run_without_events_leaves_no_account(cast, tmp_path):
    events(cast).close(tmp_path / "events.json")
    assert not (tmp_path / "events.json").exists()


def test_a_step_of_a_clock_affects_no_program_and_is_over_at_once(cast, tmp_path):
    step = event(at=100, process="all", action="step_clock")
    made = events(cast, step.model_copy(update={"lasts_ns": 0, "step_ns": -5 * SECOND}))
    made.look(99, 99)
    assert cast.said == []
    made.look(100, 100)
    assert cast.said == [("b", -5 * SECOND)]
    assert not made.is_open
    cast.now_ns += SECOND
    made.look(200, 200)
    made.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert cast.said == [("b", -5 * SECOND)]
    assert (found.began_ns, found.ended_ns) == (1_000 * SECOND, 1_000 * SECOND)
    assert found.processes == ["driver", "subscriber"]
