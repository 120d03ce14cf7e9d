"""How one application is started, in namespaces and in containers."""

from types import SimpleNamespace

import pytest

from tests.unit.harness.orchestrate.applications.test_applications import FakeProcess, Processes
from windtunnel.harness.orchestrate.applications.start import Surroundings, start
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs.containers import ComposeContainers
from windtunnel.harness.scenario.applications.application_case import ApplicationCase

CASE = ApplicationCase(
    id="feed",
    host="b",
    command=("${harness.python}", "${scenario.dir}/feed.py", "${aeron.dir}"),
    env={"PLACE": "${scenario.dir}"},
    image="example/feed:1.2",
    memory_bytes=64 << 20,
    milli_cpus=1500,
    stop_within_ns=1,
)


class Containers:
    """A lab of containers, none of which is started."""

    def __init__(self):
        self.requests = {}

    def python(self, host):
        return "python"

    def neighbor(self, host):
        raise AssertionError

    outside = build_image = neighbor

    def start_application(self, name, request):
        self.requests[name] = request
        return FakeProcess()


@pytest.fixture
def processes(tmp_path):
    found = Processes(tmp_path)
    found.lab = Containers()
    return found


def test_a_container_gets_its_folders_and_limits(processes, tmp_path):
    around = Surroundings(variables={"PATH": "/of/this/machine"})
    watched, process = start(CASE, around, processes)
    (request,) = processes.lab.requests.values()
    assert watched.process is process
    assert (watched.name, watched.log) == ("b/application-feed", request.log)
    assert request.command == ("python", "/scenario/feed.py", "/shm/b/aeron")
    assert request.env == {
        "AERON_DRIVER_TIMEOUT": "1",
        "AERON_DIR": "/shm/b/aeron",
        "PLACE": "/scenario",
    }
    assert (request.image, request.memory_bytes) == ("example/feed:1.2", 64 << 20)
    assert (request.milli_cpus, request.processes_max) == (1500, 0)
    assert request.scenario == tmp_path / "its"
    assert request.work == tmp_path / "hosts" / "b" / "application-feed"
    assert not request.starts_in_scenario


def test_the_working_folder_of_a_live_lab_can_only_be_read(processes, tmp_path):
    start(CASE, Surroundings(folder=tmp_path / "mine"), processes)
    (request,) = processes.lab.requests.values()
    assert request.scenario == tmp_path / "mine"
    assert request.starts_in_scenario


def test_in_namespaces_the_launcher_starts_it(tmp_path):
    processes = Processes(tmp_path)
    watched, _ = start(CASE, Surroundings(variables={"PATH": "/bin"}), processes)
    made = processes.spawned["application-feed"]
    assert made.argv[-3:] == ["/python", f"{tmp_path}/its/feed.py", "/shm/b/aeron"]
    assert made.env["PATH"] == "/bin"
    assert watched.log.name == "application-feed.log"


def test_docker_compose_up_has_no_engine_for_applications():
    with pytest.raises(LabError, match="use `windtunnel run --fidelity compose` outside the"):
        ComposeContainers().start_application("b/one", "b", SimpleNamespace())
