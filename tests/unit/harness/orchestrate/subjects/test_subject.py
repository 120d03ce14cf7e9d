"""Command lines of a run's processes."""

from windtunnel.harness.capture import counters
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.subjects.subject import OURS, Subject


def test_our_driver_and_workloads():
    assert OURS.driver_command("py", "/m/a") == ["py", "-m", "windtunnel.driver", "--dir", "/m/a"]
    where = {"case": "/r/case.json", "traffic": "one", "directory": "/m/a", "out": "/r/hosts/a"}
    assert OURS.workload_command("py", "publisher", **where) == [
        *("py", "-m", "windtunnel.harness.workload", "publisher"),
        *("--case", "/r/case.json"),
        *("--traffic", "one"),
        *("--aeron-dir", "/m/a"),
        *("--out", "/r/hosts/a"),
    ]


def test_the_relay():
    assert subject.relay_command("py", case="c", interfaces=("l", "r"), out="o") == [
        *("py", "-m", "windtunnel.harness.middlebox"),
        *("--case", "c", "--interface", "l", "--interface", "r", "--out", "o"),
    ]


def test_the_sampler_names_its_own_module():
    command = subject.sampler_command("py", directory="d", out="o")
    assert command[:3] == ["py", "-m", counters.__name__]
    assert command[3:] == ["--aeron-dir", "d", "--out", "o", "--interval", "5ms"]


def test_a_sabotage_is_an_argument_of_the_process_that_performs_it():
    spec = ["--sabotage", "skip-message"]
    assert subject.sabotage_arguments("publisher", "skip-message") == spec
    assert subject.sabotage_arguments("subscriber", "skip-message") == []
    assert subject.sabotage_arguments("subscriber", "flip-byte") == ["--sabotage", "flip-byte"]
    assert subject.sabotage_arguments("publisher", "flip-byte") == []
    assert subject.sabotage_arguments("publisher", "") == []


def test_a_saboteur_performs_what_workloads_cannot():
    for sabotage in ("lying-counter", "nak-when-unreliable"):
        assert subject.sabotage_arguments("saboteur", sabotage) == ["--sabotage", sabotage]
        assert subject.sabotage_arguments("subscriber", sabotage) == []


def test_placeholders_are_substituted_for_each_host():
    created = Subject(
        "it", ("{python}", "-x{dir}", "{libraries}/d"), environment={"D": "{dir}:{libraries}"}
    )
    assert created.driver_command("py", "/m/{a}", "/l") == ["py", "-x/m/{a}", "/l/d"]
    assert created.variables("py", "/m/a", "/l") == {"D": "/m/a:/l"}
