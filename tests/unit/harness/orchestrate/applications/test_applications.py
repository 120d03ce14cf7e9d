"""Supervision of applications: which ones a run waits for, which ones end it, and how all end."""

from types import SimpleNamespace

import pytest

from windtunnel.harness.artifact.run.manifest import (
    CANNOT_START,
    LOG_LOST,
    LOG_TOO_LONG,
    NOT_READY,
)
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.applications import applications as module
from windtunnel.harness.orchestrate.applications.applications import Applications
from windtunnel.harness.orchestrate.lab import LabError, NotBuilt
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.scenario.applications.application_case import ApplicationCase

SERVER = ApplicationCase(
    id="server", host="b", command=("run", "${aeron.dir}", "${scenario.dir}"), stop_within_ns=10**6
)
CLIENT = ApplicationCase(
    id="client", host="a", command=("ask",), stop_within_ns=10**6, ends_by_itself=True
)


class FakeProcess:
    """A process in place of a launcher, whose end a test controls."""

    def __init__(self):
        self.code, self.signals, self.obeys = None, [], True
        self.name = "made"

    def poll(self):
        return self.code

    def wait(self, timeout_s):
        return self.code

    def send_signal(self, number):
        self.signals.append(int(number))
        self.code = -int(number) if self.obeys else None

    def kill(self):
        self.code = -9

    def tail(self, lines=5):
        return ""


class Processes:
    """The processes of a run, none of which is started."""

    def __init__(self, folder, *, allow_commands=True):
        self.spec = SimpleNamespace(
            allow_commands=allow_commands,
            folder=RunDir(folder),
            scenario_file=folder / "its" / "made.yaml",
        )
        self.lab = SimpleNamespace(python=lambda host: "/python")
        self.timeouts = {"AERON_DRIVER_TIMEOUT": "1"}
        self.starters, self.spawned, self.images = {}, {}, {}

    def directory(self, host, application_id=""):
        return f"/shm/{host}/aeron{application_id and '-'}{application_id}"

    def add(self, role, place, log, start, what):
        log.parent.mkdir(parents=True, exist_ok=True)
        return WatchedProcess(f"{place}/{what}", start(f"{place}/{what}"), role, log)

    def spawn(self, role, place, argv, log, env, what):
        log.parent.mkdir(parents=True, exist_ok=True)
        process = FakeProcess()
        self.spawned[what] = SimpleNamespace(process=process, argv=argv, env=env, log=log)
        return WatchedProcess(f"{place}/{what}", process, role, log)


@pytest.fixture
def processes(tmp_path):
    return Processes(tmp_path)


def started(processes, *cases):
    found = Applications(cases, processes)
    for each in cases:
        found.start(each.id)
    return found


def log(processes, what, text):
    path = processes.spawned[what].log
    (path.parent / path.name.replace(".launcher", "")).write_text(text)


def test_directories_are_substituted(processes, tmp_path):
    env = {"X": "${harness.python}", "AERON_DRIVER_TIMEOUT": "2"}
    started(processes, SERVER.model_copy(update={"env": env}))
    made = processes.spawned["application-server"]
    assert made.argv[-3:] == ["run", "/shm/b/aeron", f"{tmp_path}/its"]
    assert made.env == {"AERON_DIR": "/shm/b/aeron", "X": "/python", "AERON_DRIVER_TIMEOUT": "2"}


@pytest.mark.parametrize(
    ("driver", "directory"), [("embedded", "/shm/b/aeron-server"), ("none", None)]
)
def test_an_applications_own_driver_has_another_directory(processes, driver, directory):
    case = SERVER.model_copy(update={"driver": driver, "command": ("run",)})
    started(processes, case)
    assert processes.spawned["application-server"].env.get("AERON_DIR") == directory


def test_nothing_is_started_without_permission(tmp_path):
    processes = Processes(tmp_path, allow_commands=False)
    with pytest.raises(LabError, match="the command of application server is not allowed"):
        started(processes, SERVER)
    assert processes.spawned == {}


class Builder:
    """A lab that builds images, or fails with a problem."""

    def __init__(self, problem=""):
        self.built, self._problem = [], problem

    def build_image(self, root, folder, log):
        if self._problem:
            raise NotBuilt(self._problem)
        self.built.append((root.name, folder, log.name))
        return f"image-of-{folder}"

    start_application = neighbor = outside = build_image


BUILT = SERVER.model_copy(update={"build": "feed", "command": ()})


def test_images_are_built_for_the_applications_that_have_a_folder(processes):
    lab = Builder()
    Applications((BUILT, CLIENT), processes).build_images(lab)
    assert lab.built == [("its", "feed", "application-server.build.log")]
    assert processes.images == {"server": "image-of-feed"}


def test_an_image_that_cannot_be_built_ends_the_run_without_a_harness_fault(processes):
    text = "the image of application server cannot be built from feed: no Dockerfile"
    with pytest.raises(RunFailed, match=text) as found:
        Applications((BUILT,), processes).build_images(Builder("no Dockerfile"))
    assert not found.value.harness_fault


def test_nothing_is_built_without_permission(tmp_path):
    lab, processes = Builder(), Processes(tmp_path, allow_commands=False)
    with pytest.raises(LabError, match="the command of application server is not allowed"):
        Applications((BUILT,), processes).build_images(lab)
    assert lab.built == []


def test_the_run_waits_for_applications_that_end_by_themselves(processes):
    found = started(processes, SERVER, CLIENT)
    found.update()
    assert found.names_awaited == ["a/application-client"]
    processes.spawned["application-client"].process.code = 0
    found.update()
    assert found.names_awaited == []


def test_the_run_waits_until_all_are_ready(processes):
    case = SERVER.model_copy(update={"ready_log": "up", "ready_within_ns": 10**12})
    found = started(processes, case)
    log(processes, "application-server", "starting\n")
    found.update()
    assert found.names_awaited == ["b/application-server"]
    log(processes, "application-server", "starting\nit is up now\n")
    found.update()
    assert found.names_awaited == []


@pytest.mark.parametrize("code", [None, 0, 1])
def test_a_text_that_must_not_be_logged_ends_the_run(processes, monkeypatch, code):
    changes = {"ready_log": "up", "ready_within_ns": 10**12, "log_never": ("ERROR", "late")}
    found = started(processes, SERVER.model_copy(update=changes))
    log(processes, "application-server", "up\nerror\nERR")
    found.update()
    assert found.names_awaited == []
    log(processes, "application-server", "up\nerror\nERROR: 7 is late\n")
    text = "b/application-server logged 'ERROR', which it must not: ERROR: 7 is late"
    if code is None:
        # It has some time to write what follows, such as a stack trace.
        found.update()
        now_s = module.time.monotonic()
        monkeypatch.setattr(module.time, "monotonic", lambda: now_s + 1.1)
    processes.spawned["application-server"].process.code = code
    with pytest.raises(RunFailed, match=text):
        found.update()


def test_an_application_that_is_not_ready_in_time_ends_the_run(processes, monkeypatch):
    case = SERVER.model_copy(update={"ready_log": "up", "ready_within_ns": 10**9})
    found = started(processes, case)
    now_s = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s + 2)
    with pytest.raises(RunFailed, match="is not ready after 1s: no line of its log contains 'up'"):
        found.update()
    assert found._started[0].watched.problem == NOT_READY


@pytest.mark.parametrize(
    ("case", "code", "text"),
    [
        (SERVER, 0, "b/application-server ended with exit code 0 .before it was asked to end"),
        (CLIENT, 3, "a/application-client ended with exit code 3"),
        (CLIENT.model_copy(update={"exit_code": 3}), 0, "ended with exit code 0"),
        (
            CLIENT.model_copy(update={"ready_log": "up", "ready_within_ns": 10**12}),
            0,
            "ended with exit code 0 .before it was ready",
        ),
    ],
)
def test_an_unexpected_end_ends_the_run(processes, case, code, text):
    found = started(processes, case)
    processes.spawned[f"application-{case.id}"].process.code = code
    with pytest.raises(RunFailed, match=text) as raised:
        found.update()
    assert not raised.value.harness_fault


def test_a_capture_that_becomes_too_long_ends_the_run(processes, monkeypatch):
    found = started(processes, SERVER)
    monkeypatch.setattr(module, "LOOK_INTERVAL_S", 0.0)
    monkeypatch.setattr(module, "CAPTURE_BYTES_MAX", 1024)
    processes.spec.folder.captures.mkdir(parents=True)
    capture = processes.spec.folder.captures / "a.pcap"
    capture.write_bytes(bytes(1024))
    found.update()
    capture.write_bytes(bytes(1025))
    with pytest.raises(RunFailed, match=r"the capture a.pcap exceeds 1KiB: let the applications"):
        found.update()


@pytest.mark.parametrize("code", [143, -15])
def test_a_signal_is_an_exit_code_as_in_a_shell(processes, code):
    found = started(processes, CLIENT.model_copy(update={"exit_code": 143}))
    processes.spawned["application-client"].process.code = code
    found.update()


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (CANNOT_START, "cannot be started: reason"),
        (LOG_TOO_LONG, "was killed: reason"),
        (LOG_LOST, "was killed: reason"),
    ],
)
def test_a_problem_of_the_launcher_is_named(processes, problem, text):
    found = started(processes, CLIENT)
    made = processes.spawned["application-client"]
    made.process.code = 125
    made.log.write_text(f"{problem}: reason\n")
    with pytest.raises(RunFailed, match=text):
        found.update()
    assert found._started[0].watched.problem == problem


def test_applications_are_ended_in_reverse_order_with_their_signals(processes):
    order = []
    found = started(processes, SERVER.model_copy(update={"stop_signal": "INT"}), CLIENT)
    for name, made in processes.spawned.items():
        send = made.process.send_signal
        made.process.send_signal = lambda number, send=send, name=name: (
            order.append(name),
            send(number),
        )
    found.end()
    assert order == ["application-client", "application-server"]
    assert processes.spawned["application-server"].process.signals == [2]
    assert [each.watched.late_s for each in found._started] == [0.0, 0.0]


def test_an_application_that_does_not_end_is_killed(processes):
    found = started(processes, SERVER)
    made = processes.spawned["application-server"].process
    made.obeys = False
    found.end()
    assert made.code == -9
    assert found._started[0].watched.late_s == 0.001


def test_a_killed_application_is_restarted_by_its_id(processes):
    started(processes, SERVER)
    first = processes.spawned["application-server"]
    processes.starters["application"]("server")
    assert processes.spawned["application-server"] is not first
