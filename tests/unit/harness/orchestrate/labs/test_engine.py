"""The connection to the container engine, with a missing and with a simulated engine."""

import json
import os
import subprocess
from contextlib import nullcontext
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from windtunnel.harness import installation
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import (
    compose_file,
    containers,
    engine,
    ephemeral_containers,
)
from windtunnel.harness.orchestrate.labs.compose_file import Mount
from windtunnel.harness.orchestrate.labs.ephemeral_containers import EphemeralContainers
from windtunnel.harness.orchestrate.teardown.clean import NotAllRemoved
from windtunnel.harness.orchestrate.teardown.state import LabState


@pytest.fixture(autouse=True)
def no_engine(tmp_path, monkeypatch):
    path = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.delenv(containers.INSIDE_VARIABLE, raising=False)
    return path


def test_missing_engine_is_reported_with_its_address(no_engine):
    with pytest.raises(LabError, match=f"no container engine listens on {no_engine}"):
        containers.require()


def test_without_an_engine_nothing_is_left_over():
    assert containers.remove_leftovers() == []


class Resource:
    """A container or a network of the simulated engine."""

    def __init__(self, name, *, owner, user=None, fails=None):
        self.name, self._fails, self.is_there = name, fails, True
        self.labels = {engine.TOKEN_LABEL: "0123abcd"}
        if owner is not None:
            self.labels[engine.OWNER_LABEL] = owner
        if user is not None:
            self.labels[engine.USER_LABEL] = str(user)
        self.attrs = {"Labels": self.labels}

    def remove(self, force=False, v=False):
        if self._fails is not None:
            raise self._fails
        self.is_there = False


@pytest.fixture
def play(monkeypatch):
    """Simulate an engine that has these containers and networks."""

    def start(containers_there, networks_there=()):
        client = SimpleNamespace(
            containers=SimpleNamespace(list=lambda **_: list(containers_there)),
            networks=SimpleNamespace(list=lambda **_: list(networks_there)),
            close=lambda: None,
        )
        monkeypatch.setattr(engine, "connect", lambda: client)

    return start


def owner_label(**changed):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    return json.dumps({**asdict(lab), **changed})


ODD_OWNERS = [
    *(None, "", "[" * 200_000, "{" * 10, "5", "[]", "9" * 60_000),
    *(owner_label(pid=value) for value in ("../../tmp/x", "1", True, [], 1 << 70, -1)),
    *(owner_label(**{name: {}}) for name in ("started_ticks", "boot_id", "namespaces", "token")),
]


@pytest.mark.parametrize("owner", ODD_OWNERS, ids=lambda text: f"{text!r:.30}")
def test_a_container_with_an_odd_owner_neither_stops_nor_endangers_the_others(play, owner):
    odd = Resource("odd", owner=owner)
    living = Resource("living", owner=owner_label())
    dead = Resource("dead", owner=owner_label(started_ticks=1))
    network = Resource("bridge", owner=owner_label(started_ticks=1))
    play([living, odd, dead], [network])
    removed = containers.remove_leftovers()
    assert removed == ["container odd", "container dead", "network bridge"]
    assert living.is_there


def test_a_living_owner_does_not_protect_what_another_left_with_the_same_token(play):
    dead = Resource("dead", owner=owner_label(started_ticks=1))
    play([dead, Resource("claims", owner=owner_label())])
    assert containers.remove_leftovers() == ["container dead"]


def test_containers_of_another_user_are_left_alone(play):
    dead = owner_label(started_ticks=1)
    theirs = Resource("theirs", owner=dead, user=os.geteuid() + 1)
    play([theirs, Resource("ours", owner=dead, user=os.geteuid())])
    assert containers.remove_leftovers() == ["container ours"]
    assert theirs.is_there


def test_everything_created_is_labelled_with_its_user():
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    assert engine.labels_of(lab)[engine.USER_LABEL] == str(os.geteuid())


@pytest.mark.parametrize("error", [engine.DockerException("no"), OSError("no")])
def test_a_container_that_cannot_be_removed_does_not_stop_the_others(play, error):
    dead = owner_label(started_ticks=1)
    play([Resource("stuck", owner=dead, fails=error), Resource("dead", owner=dead)])
    with pytest.raises(NotAllRemoved, match="container stuck: no") as caught:
        containers.remove_leftovers()
    assert caught.value.removed == ["container dead"]


def test_a_container_that_has_gone_meanwhile_is_not_a_failure(play):
    play([Resource("gone", owner="", fails=engine.NotFound("gone"))])
    assert containers.remove_leftovers() == []


def test_an_existing_control_folder_is_not_used(tmp_path, play, monkeypatch):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    containers_of_lab = EphemeralContainers(lab, tmp_path / ".lab", ["a", "mid"], tmp_path)
    monkeypatch.setattr(engine, "ensure_image", lambda *_: None)
    monkeypatch.setattr(
        ephemeral_containers,
        "CleanupWatchdog",
        lambda *_, **__: SimpleNamespace(release=lambda word: None),
    )
    play([])
    planted = tmp_path / ".lab" / "0123abcd.control"
    planted.mkdir(parents=True)
    with pytest.raises(LabError, match=r"0123abcd\.control: a file or directory with this name"):
        containers_of_lab.start()
    assert list(planted.iterdir()) == []


def test_containers_that_never_started_leave_nothing_to_remove(tmp_path):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    containers_of_lab = EphemeralContainers(lab, tmp_path / ".lab", ["a", "b", "mid"], tmp_path)
    containers_of_lab.remove()
    with pytest.raises(LabError, match="no container engine"):
        containers_of_lab.start()
    containers_of_lab.remove()


def test_owner_is_alive_as_long_as_its_process():
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    label = engine.labels_of(lab)[engine.OWNER_LABEL]
    assert engine.owner_is_alive(label)
    assert not engine.owner_is_alive(label.replace(f'"pid": {lab.pid}', '"pid": 1'))


@pytest.mark.parametrize("label", ["", "{", "[]", '{"pid": 1}'])
def test_a_label_without_an_owner_has_no_living_owner(label):
    assert not engine.owner_is_alive(label)


def test_mounts_use_the_folders_of_the_lab(tmp_path):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    containers_of_lab = EphemeralContainers(lab, tmp_path / ".lab", ["a", "mid"], tmp_path)
    plan = compose_file.container_spec(compose_file.read(), "a")
    assert containers_of_lab._placed(plan.mounts) == [
        Mount(str(installation.ROOT), "/windtunnel", read_only=True),
        Mount(str(tmp_path), "/windtunnel/runs"),
        Mount(str(tmp_path / ".lab" / "0123abcd.control"), "/control"),
        Mount("windtunnel-kernels", "/kernels"),
    ]


def test_files_of_a_container_are_found_below_its_root(play, monkeypatch, tmp_path):
    client = SimpleNamespace(
        containers=SimpleNamespace(
            get=lambda name: SimpleNamespace(name=name, attrs={"State": {"Pid": os.getpid()}})
        ),
        close=lambda: None,
    )
    monkeypatch.setattr(engine, "connect", lambda: client)
    lab = LabState(token="0123abcd", run_id="x", kind="compose")
    made = EphemeralContainers(lab, tmp_path, ("a", "mid"), tmp_path)
    assert made.neighbor("a").name == "wt-0123abcd-a"
    assert made.neighbor("a").labels[engine.TOKEN_LABEL] == "0123abcd"
    with made.outside("a", "/dev/shm") as found:
        assert os.stat(found).st_ino == os.stat("/dev/shm").st_ino
    (tmp_path / "link").symlink_to("/dev/shm")
    with (
        pytest.raises(UnsafeFileError, match="found a symbolic"),
        made.outside("a", str(tmp_path / "link")),
    ):
        pass
    monkeypatch.setattr(os, "access", lambda *_: False)
    text = "the memory of host mid cannot be read: it needs root"
    with pytest.raises(LabError, match=text), made.outside("mid", "/dev/shm"):
        pass


def test_the_memory_of_a_host_is_that_of_its_current_process(tmp_path, monkeypatch):
    state = {}
    container = SimpleNamespace(attrs={"State": state})
    client = SimpleNamespace(containers=SimpleNamespace(get=lambda name: container))
    monkeypatch.setattr(engine, "connection", lambda: nullcontext(client))
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    made = EphemeralContainers(lab, tmp_path, ["a"], tmp_path)
    with subprocess.Popen(["sleep", "60"]) as first:
        state["Pid"] = first.pid
        with made.outside("a", "/dev/shm") as path:
            assert path.is_dir()
        first.kill()
    state["Pid"] = os.getpid()
    with made.outside("a", "/dev/shm") as path:
        assert path.is_dir()
