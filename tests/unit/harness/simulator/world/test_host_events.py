"""Events happen exactly when triggered, affect the programs then running, and are recorded."""

import pytest

from windtunnel.harness.artifact.host.host_event import read_applied_events
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.simulator.world.host_events import HostEvents

SECOND = 10**9


class Program:
    def __init__(self, role, actions):
        self.role, self.name, self._actions = role, f"b/{role}", actions
        self.is_killed = False

    def pause(self):
        self._actions.append((self.role, "pause"))

    def resume(self):
        self._actions.append((self.role, "resume"))

    def kill(self):
        self.is_killed = True
        self._actions.append((self.role, "kill"))


class FakePrograms:
    """A host `b` with a driver and a subscriber, and a clock."""

    def __init__(self):
        self.actions, self.now_ns = [], 1_000 * SECOND
        self.programs = [Program(role, self.actions) for role in ("driver", "subscriber")]

    def on_host(self, host, roles):
        return [each for each in self.programs if host == "b" and each.role in roles]

    def replace(self, killed):
        self.actions.append((killed.role, "replace"))


@pytest.fixture
def control():
    return FakePrograms()


def events(control, *ordered):
    step_clock = lambda host, step_ns: control.actions.append((host, step_ns))  # noqa: E731
    return HostEvents(ordered, control, lambda: control.now_ns, None, step_clock)


def event(trigger="delivered", at=100, *, process="driver", action="pause", host="b"):
    return EventCase(
        id=f"{action}-{at}", host=host, process=process, trigger=trigger, at=at, action=action,
        lasts_ns=SECOND,
    )  # fmt: skip


@pytest.mark.parametrize(("trigger", "before", "then"), [
    ("delivered", (500, 99), (500, 100)),
    ("published", (99, 0), (100, 0)),
])  # fmt: skip
def test_a_pause_begins_at_a_stream_position_and_ends(control, trigger, before, then):
    made = events(control, event(trigger))
    made.look(*before)
    assert not made.is_open
    made.look(*then)
    assert control.actions == [("driver", "pause")]
    control.now_ns += SECOND - 1
    made.look(*then)
    assert made.is_open
    control.now_ns += 1
    made.look(*then)
    assert control.actions[1:] == [("driver", "resume")]
    assert not made.is_open
    made.look(10**9, 10**9)
    assert len(control.actions) == 2


def test_time_counts_from_the_first_message(control):
    made = events(control, event("after", 2 * SECOND))
    made.look(0, 0)
    control.now_ns += 10 * SECOND
    made.look(1, 0)
    control.now_ns += 2 * SECOND - 1
    made.look(1, 0)
    assert control.actions == []
    control.now_ns += 1
    made.look(1, 0)
    assert control.actions == [("driver", "pause")]


def test_a_killed_program_is_replaced(control, tmp_path):
    made = events(control, event(action="kill"))
    made.look(0, 100)
    control.now_ns += SECOND
    made.look(0, 100)
    assert control.actions == [("driver", "kill"), ("driver", "replace")]
    made.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert (found.id, found.host, found.action) == ("kill-100", "b", "kill")
    assert found.processes == ["driver"]
    assert found.ended_ns - found.began_ns == SECOND


def test_an_event_affects_only_the_programs_that_it_names(control):
    made = events(control, event(process="all"), event(at=101, host="a"))
    made.look(0, 101)
    assert control.actions == [("driver", "pause"), ("subscriber", "pause")]


def test_an_event_that_was_never_triggered_is_not_recorded(control, tmp_path):
    made = events(control, event(at=100), event(at=200))
    made.look(0, 150)
    made.close(tmp_path / "events.json")
    assert [each.id for each in read_applied_events(tmp_path / "events.json")] == ["pause-100"]


def test_no_program_stays_paused_and_a_killed_one_is_not_replaced_at_the_end(control, tmp_path):
    made = events(control, event(), event(at=99, action="kill", process="subscriber"))
    made.look(0, 100)
    made.close(tmp_path / "events.json")
    assert control.actions == [("driver", "pause"), ("subscriber", "kill"), ("driver", "resume")]
    ended_ns = {each.id: each.ended_ns for each in read_applied_events(tmp_path / "events.json")}
    assert ended_ns == {"pause-100": control.now_ns, "kill-99": 0}


def test_a_run_without_events_writes_no_file(control, tmp_path):
    events(control).close(tmp_path / "events.json")
    assert not (tmp_path / "events.json").exists()


def test_a_step_of_a_clock_affects_no_program_and_is_over_at_once(control, tmp_path):
    step = event(at=100, process="all", action="step_clock")
    made = events(control, step.model_copy(update={"lasts_ns": 0, "step_ns": -5 * SECOND}))
    made.look(99, 99)
    assert control.actions == []
    made.look(100, 100)
    assert control.actions == [("b", -5 * SECOND)]
    assert not made.is_open
    control.now_ns += SECOND
    made.look(200, 200)
    made.close(tmp_path / "events.json")
    (found,) = read_applied_events(tmp_path / "events.json")
    assert control.actions == [("b", -5 * SECOND)]
    assert (found.began_ns, found.ended_ns) == (1_000 * SECOND, 1_000 * SECOND)
    assert found.processes == ["driver", "subscriber"]
