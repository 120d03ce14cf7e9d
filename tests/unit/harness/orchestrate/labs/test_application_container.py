"""The container of an application, with a simulated engine."""

import signal
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.harness.orchestrate.lab import ApplicationRequest, LabError
from windtunnel.harness.orchestrate.labs import application_container
from windtunnel.harness.orchestrate.labs.application_container import (
    ApplicationContainer,
    DockerException,
    ImageNotFound,
    mount_option,
    settings,
)
from windtunnel.harness.orchestrate.labs.compose_file import Mount


class EngineError(DockerException):
    """An error of the engine, with its reason."""

    def __init__(self, explanation):
        super().__init__("500 Server Error")
        self.explanation = explanation


class Output:
    """The output of an application: an item for each write, until its container ends."""

    def __init__(self, chunks, ended):
        self._chunks, self._ended = chunks, ended
        self._response = self
        self.is_closed = False

    def __iter__(self):
        yield from self._chunks
        self._ended.wait(10)

    def close(self):
        self.is_closed = True


class Engine:
    """An engine, and the only container that it creates."""

    def __init__(self, chunks=(), create_error=None, start_error=None, ignores=()):
        self.containers = self
        self.ended = threading.Event()
        self.output = Output(chunks, self.ended)
        self.asked, self.code = [], 0
        self._errors = {"create": create_error, "start": start_error}
        self._ignores = ignores

    def _do(self, what):
        self.asked.append(what)
        if self._errors.get(what):
            raise self._errors[what]

    def create(self, **settings):
        self.settings = settings
        self._do("create")
        return self

    def attach(self, **_):
        return self.output

    def start(self):
        self._do("start")

    def wait(self, timeout):
        assert self.ended.wait(10)
        return {"StatusCode": self.code}

    def kill(self, signal=signal.SIGKILL):
        self._do(f"kill {int(signal)}")
        if signal not in self._ignores:
            self.end(128 + signal)

    def end(self, code):
        self.code = code
        self.ended.set()

    def pause(self):
        self._do("pause")

    def unpause(self):
        self._do("unpause")

    def remove(self, force, v):
        self._do("remove")
        self.ended.set()

    def close(self):
        self._do("close")


@pytest.fixture
def request_(tmp_path):
    return ApplicationRequest(
        image="",
        command=("feed", "-v"),
        env={"A": "1"},
        work=tmp_path / "work",
        scenario=tmp_path,
        starts_in_scenario=False,
        log=tmp_path / "feed.log",
        log_bytes_max=100,
        memory_bytes=64 << 20,
        milli_cpus=1500,
    )


def begun(engine, request):
    found = ApplicationContainer("b/application-feed", request, engine)
    made = settings(
        request,
        host="wt-b",
        name="wt-b-1",
        image="ours",
        labels={},
        code=[Mount(str(request.scenario), "/x", read_only=True)],
        runs=request.scenario / "runs",
    )
    found.start(made)
    return found


def test_it_has_few_privileges_and_its_limits(request_):
    engine = Engine([b"one\n", b"two\n"])
    container = begun(engine, request_)
    engine.end(0)
    assert container.wait(10) == 0
    assert request_.log.read_bytes() == b"one\ntwo\n"
    assert container.tail(1) == "two"
    found = engine.settings
    assert (found["cap_drop"], found["security_opt"]) == (["ALL"], ["no-new-privileges"])
    assert (found["mem_limit"], found["nano_cpus"]) == (64 << 20, 1_500_000_000)
    assert (found["network_mode"], found["ipc_mode"]) == ("container:wt-b", "container:wt-b")
    scenario = Mount(str(request_.scenario), "/scenario", read_only=True)
    code, work = replace(scenario, target="/x"), Mount(str(request_.work), "/work")
    assert found["mounts"] == [mount_option(each) for each in (code, scenario, work)]
    assert (found["image"], found["read_only"]) == ("ours", True)
    # It has no access to the folder of runs, which contains the lab's sockets.
    assert found["tmpfs"] == {
        "/tmp": "size=64m",
        "/scenario/runs": "ro,size=4k",
        "/x/runs": "ro,size=4k",
    }
    assert found["memswap_limit"] == found["mem_limit"]
    assert (found["log_config"], found["command"]) == ({"type": "none"}, ["feed", "-v"])
    container.remove()
    assert engine.asked[-2:] == ["remove", "close"]
    assert engine.output.is_closed


def test_it_is_root_or_another_user_that_may_use_the_drivers_files(request_):
    engine = Engine()
    begun(engine, request_).kill()
    assert (engine.settings["user"], engine.settings["group_add"]) == ("0:0", ["0"])
    other = replace(request_, user="1000:1000")
    engine = Engine()
    begun(engine, other).kill()
    assert (engine.settings["user"], engine.settings["group_add"]) == ("1000:1000", ["0"])
    assert stat.S_IMODE(other.work.stat().st_mode) == 0o777


def test_a_driver_has_no_mounted_folder_of_this_machine(request_):
    engine = Engine()
    request = replace(request_, image="driver", work=None, scenario=None)
    made = settings(
        request, host="h", name="n", image="", labels={}, code=[Mount("/a", "/b")], runs=Path("/r")
    )
    container = ApplicationContainer("b/driver", request, engine)
    container.start(made)
    container.kill()
    assert engine.settings["mounts"] == []
    assert "tmpfs" not in engine.settings


def test_the_exit_code_after_a_signal_is_the_negative_number_of_the_signal(request_):
    engine = Engine()
    container = begun(engine, request_)
    container.terminate()
    assert container.wait(10) == -signal.SIGTERM
    container.terminate()
    assert engine.asked.count("kill 15") == 1


def test_a_pause_stops_all_its_processes_until_it_continues(request_):
    engine = Engine()
    container = begun(engine, request_)
    container.send_signal(signal.SIGSTOP)
    container.send_signal(signal.SIGCONT)
    container.send_signal(signal.SIGCONT)
    assert engine.asked[2:] == ["pause", "unpause"]
    container.send_signal(signal.SIGSTOP)
    container.kill()
    assert engine.asked[4:] == ["pause", "unpause", "kill 9"]
    assert container.poll() == -9


def test_a_log_that_becomes_too_long_ends_it(request_):
    engine = Engine([b"x" * 60, b"y" * 60])
    container = begun(engine, request_)
    assert container.wait(10) == -9
    assert request_.log.read_bytes() == b"x" * 60 + b"y" * 40
    assert container.problem() == ("log-too-long", "the log exceeds 100 bytes")
    assert container.tail(1) == "the log exceeds 100 bytes"


def test_a_log_that_cannot_be_written_ends_it(request_, monkeypatch):
    # /dev/full has no last line.
    monkeypatch.setattr(application_container, "tail_of", lambda log, lines: "")
    engine = Engine([b"one\n"])
    container = begun(engine, replace(request_, log=Path("/dev/full")))
    assert container.wait(10) == -9
    text = "the log cannot be written: No space left on device"
    assert container.problem() == ("log-lost", text)
    container.remove()


def test_output_that_the_engine_does_not_deliver_is_lost(request_):
    def broken():
        yield b"one\n"
        raise ValueError("the connection is\nlost")

    engine = Engine(broken())
    container = begun(engine, request_)
    assert container.wait(10) == -9
    text = "the engine has not delivered its output: the connection is lost"
    assert container.problem() == ("log-lost", text)
    assert request_.log.read_bytes() == b"one\n"


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (Engine(create_error=ImageNotFound("no")), "there is no image 'ours' on this machine"),
        (Engine(start_error=EngineError('exec: "feed":\nnot found')),
         'exec: "feed": not found'),
    ],
)  # fmt: skip
def test_a_container_that_cannot_be_started_has_ended_with_a_reason(request_, engine, text):
    container = begun(engine, request_)
    assert container.poll() == 126
    problem, reason = container.problem()
    assert problem == "cannot-start"
    assert text in reason
    assert container.tail() == reason
    container.remove()


def test_a_command_that_is_not_in_the_image_is_named(request_):
    engine = Engine([b"[FATAL tini (7)] exec feed failed: No such file or directory\n"])
    container = begun(engine, request_)
    engine.end(127)
    assert container.wait(10) == 127
    assert container.problem() == (
        "cannot-start",
        "'feed' cannot be executed in its image: No such file or directory",
    )


def test_an_engine_that_fails_is_an_error_of_the_lab(request_, monkeypatch):
    engine = Engine()
    container = begun(engine, request_)
    monkeypatch.setattr(engine, "pause", lambda: (_ for _ in ()).throw(EngineError("no engine")))
    before_s = time.monotonic()
    with pytest.raises(LabError, match="b/application-feed: the engine reported: no engine"):
        container.send_signal(signal.SIGSTOP)
    assert time.monotonic() - before_s >= 1
    container.remove()


@pytest.mark.parametrize("below", [".", "suite"])
def test_a_scenario_among_the_runs_is_refused(request_, below):
    runs = request_.scenario
    request = replace(request_, image="other", scenario=runs / below)
    with pytest.raises(LabError, match="an application would have access to the runs"):
        settings(request, host="h", name="n", image="i", labels={}, code=[], runs=runs)


def test_a_path_with_a_colon_is_mounted_as_it_is():
    option = mount_option(Mount("/srv/a:b", "/work", read_only=True))
    assert (option["Type"], option["Source"], option["Target"]) == ("bind", "/srv/a:b", "/work")
    assert option["ReadOnly"]
    assert mount_option(Mount("kernels", "/kernels"))["Type"] == "volume"
