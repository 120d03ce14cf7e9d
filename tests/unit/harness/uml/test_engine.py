"""The container engine inside the kernel, with replacements for all programs that it starts."""

import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from windtunnel.harness.uml import engine

GROUPS = """\
#subsys_name\thierarchy\tnum_cgroups\tenabled
cpu\t0\t1\t1
memory\t0\t1\t0
pids\t0\t1\t1
"""
OBEYS = '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n'
ARGUMENTS = ["/image.tar", "kernels", "/folder", "sh", "-c", "echo made it; exit 7"]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs that only log their command lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(engine, "PLACE", tmp_path / "engine")
    monkeypatch.setattr(engine, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(engine, "_CONTROLLERS", tmp_path / "controllers")
    (tmp_path / "groups").mkdir()
    (tmp_path / "controllers").write_text(GROUPS)

    def write(name, text=OBEYS):
        program = folder / name
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    # The path of a socket must be short, and that of pytest's folder may be long.
    place = tempfile.mkdtemp(prefix="wt-")
    monkeypatch.setattr(engine, "CONTAINERD_SOCKET", Path(place) / "socket")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(engine.CONTAINERD_SOCKET))
    listening.listen()
    for name in ("mke2fs", "mount", "docker"):
        write(name)
    for name in ("containerd", "dockerd"):
        write(name, OBEYS + "exec /bin/sleep 60\n")
    yield write
    listening.close()
    shutil.rmtree(place)


@pytest.fixture(autouse=True)
def _own_signals(monkeypatch):
    monkeypatch.setattr(engine.signal, "signal", lambda number, handler: None)


def test_controllers_are_the_enabled_ones():
    assert engine.controllers(GROUPS) == ["cpu", "pids"]


def test_the_command_runs_beside_an_engine_that_has_the_image(programs, tmp_path, capfd):
    assert engine.main(ARGUMENTS) == 7
    assert capfd.readouterr().out == "made it\n"
    calls = (tmp_path / "calls").read_text().splitlines()
    docker = [line for line in calls if line.startswith("docker ") and "version" not in line]
    assert docker == [
        f"docker --host {engine.SOCKET} load --quiet --input /image.tar",
        f"docker --host {engine.SOCKET} volume create --opt type=none --opt o=bind "
        "--opt device=/folder kernels",
    ]
    mounted = [line.split()[-1].rpartition("/")[2] for line in calls if line.startswith("mount ")]
    assert mounted == ["engine", "groups", "cpu", "pids"]


def test_a_program_that_fails_is_quoted(programs, capfd):
    programs("mke2fs", "#!/bin/sh\necho 'no such disk' >&2\nexit 1\n")
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    reported = capfd.readouterr().err
    assert f"{engine.DISK}: no such disk" in reported
    assert reported.startswith("windtunnel: no container engine inside the kernel: ")


def test_an_engine_that_ends_at_once_is_quoted(programs, capfd):
    programs("dockerd", "#!/bin/sh\necho 'no overlay here'\nexit 1\n")
    programs("docker", "#!/bin/sh\nexit 1\n")
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    assert "dockerd ended with exit code 1\nno overlay here" in capfd.readouterr().err


def test_an_engine_that_never_answers_is_given_up(programs, capfd, monkeypatch):
    monkeypatch.setattr(engine, "START_S", 0.3)
    programs("docker", "#!/bin/sh\nexit 1\n")
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    assert "dockerd did not respond within 0.3 s" in capfd.readouterr().err


def test_containerd_is_started_first_and_waited_for(programs, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "START_S", 0.3)
    engine.CONTAINERD_SOCKET.unlink()
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    assert "containerd did not respond within 0.3 s" in capfd.readouterr().err
    assert "dockerd" not in (tmp_path / "calls").read_text()


def test_a_missing_program_is_named(programs, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    assert "cannot start mke2fs: No such file" in capfd.readouterr().err


def test_containerd_that_dies_later_is_quoted_beside_dockerd(programs, capfd):
    programs(
        "containerd",
        OBEYS + "echo $$ >$CALLS.pid; until [ -e $CALLS.asked ]; do sleep 0.01; done\n"
        "echo 'no memory'; exit 9\n",
    )
    # Containerd is still a zombie when dockerd ends.
    programs(
        "dockerd",
        OBEYS + ">$CALLS.asked; until [ -s $CALLS.pid ]; do sleep 0.01; done\n"
        "until grep -q '^State:.Z' /proc/$(cat $CALLS.pid)/status; do sleep 0.01; done\n"
        "echo 'no containerd'; exit 1\n",
    )
    programs("docker", "#!/bin/sh\nexit 1\n")
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    reported = capfd.readouterr().err
    assert "dockerd ended with exit code 1\nno containerd" in reported
    assert "containerd ended with exit code 9\nno memory" in reported


def test_a_missing_docker_is_named_and_nothing_is_left_running(
    programs, capfd, tmp_path, monkeypatch
):
    (tmp_path / "bin" / "docker").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    daemons = []
    popen = engine.subprocess.Popen

    def start(argv, **options):
        # The daemon may be terminated before its first command: only its parent knows its id.
        daemon = popen(argv, **options)
        if argv[0] in ("containerd", "dockerd"):
            daemons.append(daemon)
        return daemon

    monkeypatch.setattr(engine.subprocess, "Popen", start)
    assert engine.main(ARGUMENTS) == engine.CANNOT_START
    assert "cannot start docker: No such file" in capfd.readouterr().err
    assert [daemon.args[0] for daemon in daemons] == ["containerd", "dockerd"]
    assert not [daemon.pid for daemon in daemons if Path(f"/proc/{daemon.pid}").exists()]
