"""The containers of one lab: their control folder, mounts, files and memory."""

import os
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from windtunnel.harness import installation
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import (
    compose_file,
    engine,
    ephemeral_containers,
)
from windtunnel.harness.orchestrate.labs.compose_file import Mount
from windtunnel.harness.orchestrate.labs.ephemeral_containers import EphemeralContainers
from windtunnel.harness.orchestrate.teardown.state import LabState


def test_an_existing_control_folder_is_not_used(tmp_path, monkeypatch):
    lab = LabState(token="0123abcd", run_id="suite/run", kind="compose")
    containers_of_lab = EphemeralContainers(lab, tmp_path / ".lab", ["a", "mid"], tmp_path)
    monkeypatch.setattr(engine, "ensure_image", lambda *_: None)
    monkeypatch.setattr(
        ephemeral_containers,
        "CleanupWatchdog",
        lambda *_, **__: SimpleNamespace(release=lambda word: None),
    )
    client = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(engine, "connect", lambda: client)
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


def test_files_of_a_container_are_found_below_its_root(monkeypatch, tmp_path):
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
