"""Ending the processes of a run: late ones are killed, and the fault is attributed."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.orchestrate.run import run_processes as module
from windtunnel.harness.orchestrate.run.run_processes import RunProcesses
from windtunnel.harness.orchestrate.subjects.subject import DIRECTORY, OURS, Subject


class IgnoresSigterm:
    """A process that ends only when it is killed."""

    code = None

    def poll(self):
        return self.code

    def wait(self, timeout_s):
        return self.code

    def terminate(self):
        pass

    def kill(self):
        self.code = -9

    def tail(self, lines=5):
        return "busy"


class EndsOnSigterm(IgnoresSigterm):
    """A process that ends when it is asked to."""

    def terminate(self):
        self.code = 0


@pytest.fixture
def errors():
    return []


@pytest.fixture
def processes(errors, monkeypatch):
    monkeypatch.setattr(module, "STOP_TIMEOUT_S", 0.01)
    return RunProcesses(SimpleNamespace(), SimpleNamespace(), errors)


def join(processes, tmp_path, role, process):
    watched = WatchedProcess(f"a/{role}", process, role, tmp_path / "hosts" / "log")
    processes.watched.append(watched)
    return watched


@pytest.mark.parametrize("role", ["driver", "archive", "publisher", "subscriber"])
def test_a_subject_that_is_late_is_noted_with_its_end_and_is_no_error(
    processes, errors, tmp_path, role
):
    late = join(processes, tmp_path, role, IgnoresSigterm())
    processes.end(role)
    assert errors == []
    found = late.facts(tmp_path)
    assert (found.asked, found.exit_code, found.late_s) == (True, -9, 0.01)


@pytest.mark.parametrize("role", ["relay", "capture", "sampler", "saboteur"])
def test_a_late_process_of_the_harness_is_an_error(processes, errors, tmp_path, role):
    join(processes, tmp_path, role, IgnoresSigterm())
    processes.end(role)
    assert errors == [f"a/{role} did not end within 0.01 s of the request to end"]


def test_a_process_that_ends_when_it_is_asked_to_is_not_late(processes, errors, tmp_path):
    driver = join(processes, tmp_path, "driver", EndsOnSigterm())
    processes.end("driver", "relay")
    assert (errors, driver.facts(tmp_path).late_s) == ([], 0.0)


class FakeLab:
    """A lab that records what it was asked to start."""

    def __init__(self):
        self.spawned, self.requested = [], {}

    def python(self, place):
        return "python"

    def path(self, path):
        return str(path)

    def shared_memory(self, host):
        return f"/dev/shm/{host}"

    def spawn(self, place, argv, *, env=None, log):
        self.spawned.append((place, env, argv))
        return IgnoresSigterm()

    def start_application(self, name, request):
        self.requested[name] = request
        return IgnoresSigterm()

    def neighbor(self, host):
        raise NotImplementedError

    outside = build_image = neighbor


def lab_and_processes(tmp_path, tested):
    drivers = {"a": {"AERON_MTU_LENGTH": "4k"}}
    applications = [SimpleNamespace(host="b", user="1000")]
    scenario = SimpleNamespace(
        name="made/up", archives=(), drivers=drivers, applications=applications
    )
    spec = SimpleNamespace(scenario=scenario, folder=RunDir(tmp_path), subject=lambda host: tested)
    lab = FakeLab()
    return lab, RunProcesses(spec, lab, [])


def test_a_driver_has_the_settings_of_its_host(tmp_path):
    lab, processes = lab_and_processes(tmp_path, OURS)
    for host in ("a", "b"):
        processes.start_driver(host)
    assert [env.get("AERON_MTU_LENGTH") for _, env, _ in lab.spawned] == ["4k", None]
    # An application of another user may use the files of the driver of host b.
    plain, shared = (argv for _, _, argv in lab.spawned)
    assert plain[:3] == ["python", "-m", "windtunnel.driver"]
    assert shared[:4] == ["sh", "-c", 'umask 007; exec "$@"', "sh"]


def test_a_driver_in_an_image_gets_the_variables_of_the_contract_and_no_process(tmp_path):
    image = Subject("image:x", (), image="x", environment={"AERON_DIR": DIRECTORY})
    lab, processes = lab_and_processes(tmp_path, image)
    processes.start_driver("a")
    processes.start_driver("a", killed_ms=5)
    assert [*lab.requested] == ["a/driver", "a/driver#2"]
    first, second = lab.requested.values()
    assert first.env == {
        "AERON_DIR": "/dev/shm/a/aeron",
        "AERON_MTU_LENGTH": "4k",
        "WINDTUNNEL_CONTRACT": "1",
        "WINDTUNNEL_SCENARIO": "made/up",
    }
    assert second.env["AERON_DIR_DELETE_ON_START"] == "true"
    assert (first.image, first.command, first.work, first.scenario) == ("x", (), None, None)
    processes.start_sampler("a")
    assert "--hidden-driver" in lab.spawned[0][2]
