"""Command lines are those that the programs understand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.capture import counters
from harness.orchestrate import subject
from harness.orchestrate.subject import OURS, Mutation, Subject


def test_our_driver_and_workloads():
    assert OURS.driver_command("py", "/m/a") == ["py", "-m", "driver", "--dir", "/m/a"]
    where = {"case": "/r/case.json", "traffic": "one", "directory": "/m/a", "out": "/r/hosts/a"}
    assert OURS.workload_command("py", "publisher", **where) == [
        *("py", "-m", "harness.workload", "publisher"),
        *("--case", "/r/case.json"),
        *("--traffic", "one"),
        *("--aeron-dir", "/m/a"),
        *("--out", "/r/hosts/a"),
    ]


def test_the_relay():
    assert subject.relay_command("py", case="c", left="l", right="r", out="o") == [
        *("py", "-m", "harness.middlebox"),
        *("--case", "c", "--left", "l", "--right", "r", "--out", "o"),
    ]


def test_the_sampler_names_its_own_module():
    command = subject.sampler_command("py", directory="d", out="o")
    assert command[:3] == ["py", "-m", counters.__name__]
    assert command[3:] == ["--aeron-dir", "d", "--out", "o", "--interval", "5ms"]


def test_a_sabotage_is_an_argument_of_the_process_that_commits_it():
    order = ["--sabotage", "skip-message"]
    assert subject.sabotage_arguments("publisher", "skip-message") == order
    assert subject.sabotage_arguments("subscriber", "skip-message") == []
    assert subject.sabotage_arguments("subscriber", "flip-byte") == ["--sabotage", "flip-byte"]
    assert subject.sabotage_arguments("publisher", "flip-byte") == []
    assert subject.sabotage_arguments("publisher", "") == []


def test_a_saboteur_of_its_own_commits_what_workloads_cannot():
    for sabotage in ("lying-counter", "nak-when-unreliable"):
        assert subject.sabotage_arguments("saboteur", sabotage) == ["--sabotage", sabotage]
        assert subject.sabotage_arguments("subscriber", sabotage) == []


def stream(source: str, target: str) -> SimpleNamespace:
    return SimpleNamespace(from_host=source, to_host=target)


@pytest.mark.parametrize(
    ("side", "streams", "mutated"),
    [
        ("sender", [stream("a", "b")], {"a"}),
        ("receiver", [stream("a", "b")], {"b"}),
        ("both", [stream("a", "b")], {"a", "b"}),
        ("sender", [stream("a", "b"), stream("b", "a")], {"a", "b"}),
    ],
)
def test_a_mutated_driver_runs_on_its_side_alone(side, streams, mutated):
    sound = Subject("ours", (), (), {"X": "1"})
    planted = replace(sound, mutation=Mutation("m", side, {"PYTHONPATH": "m", "X": "2"}))
    for host in ("a", "b"):
        expected = {"X": "2", "PYTHONPATH": "m"} if host in mutated else {"X": "1"}
        assert planted.environment_at(host, streams) == expected
        assert sound.environment_at(host, streams) == {"X": "1"}
