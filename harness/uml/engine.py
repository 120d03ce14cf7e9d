"""A container engine inside User Mode Linux.

    python -m windtunnel.harness.uml.engine IMAGE VOLUME FOLDER COMMAND...

    disk --> control groups --> containerd, dockerd --> image, volume --> the command --> the end
    /dev/ubda                                            |
                                   IMAGE: a file that `docker save` wrote
                                   VOLUME: its name; its files are those of FOLDER, shared with
                                           the machine around

The engine is one of this kernel's own, on an empty disk that nobody keeps. It makes no firewall
rules: a lab's containers talk to each other over bridges, and to nobody else. dockerd would start
containerd itself, but gives it fifteen seconds, which is too little on a slow machine. Ends with
the command's exit code, or with 3 if there is no engine. Refuses to know what the command is.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

DISK = "/dev/ubda"
PLACE = Path("/run/engine")
SOCKET = "unix:///run/docker.sock"
CONTAINERD_SOCKET = Path("/run/containerd.sock")
_CONTAINERD_CONFIG = """\
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
"""
MODULES = ("ext4", "overlay", "bridge", "veth")
"""Kernel modules beyond what a lab of namespaces needs."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CANNOT_START = 3
START_S = 240.0
"""Each of the two programs has so long to answer."""
STOP_S = 30.0
ANSWER_S = 30.0
POLL_S = 0.1
LOG_LINES = 5
_GROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = Path("/proc/cgroups")


class NoEngine(Exception):
    """The engine does not come up; the text says what failed."""


def main(argv: list[str]) -> int:
    """Start the engine, run the command, end the engine; returns the exit code."""
    image, volume, folder, *command = argv
    started: list[subprocess.Popen[bytes]] = []
    for number in SIGNALS:
        signal.signal(number, _leave)
    try:
        _make_room()
        started.append(_start_containerd())
        started.append(_start_dockerd())
        _docker("load", "--quiet", "--input", image)
        bound = ("type=none", "o=bind", f"device={folder}")
        options = [word for each in bound for word in ("--opt", each)]
        _docker("volume", "create", *options, volume)
        return _run(command)
    except NoEngine as error:
        deaths = [_death_of(each) for each in started if each.poll() is not None]
        told = "\n".join([str(error), *deaths])
        print(f"windtunnel: no container engine inside: {told}", file=sys.stderr, flush=True)
        return CANNOT_START
    finally:
        for serving in reversed(started):
            _stop(serving)


def _leave(number: int, frame: FrameType | None) -> None:
    """Before there is a command, a signal is the end; the engine is ended on the way out."""
    sys.exit(128 + number)


def controllers(table: str) -> list[str]:
    """The control group controllers that a kernel has switched on, by its /proc/cgroups."""
    rows = [line.split() for line in table.splitlines() if not line.startswith("#")]
    return [row[0] for row in rows if len(row) == 4 and row[3] == "1"]


def _make_room() -> None:
    """Give the engine its disk and its control groups."""
    PLACE.mkdir(parents=True, exist_ok=True)
    _do("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", DISK)
    _do("mount", "-t", "ext4", DISK, str(PLACE))
    _do("mount", "-t", "tmpfs", "control-groups", str(_GROUPS))
    for name in controllers(_CONTROLLERS.read_text()):
        (_GROUPS / name).mkdir()
        _do("mount", "-t", "cgroup", "-o", name, name, str(_GROUPS / name))


def _start_containerd() -> subprocess.Popen[bytes]:
    config = PLACE / "containerd.toml"
    config.write_text(_CONTAINERD_CONFIG)
    argv = ["containerd", "--config", str(config), "--address", str(CONTAINERD_SOCKET)]
    argv += ["--root", str(PLACE / "containerd"), "--state", str(PLACE / "containers")]
    return _start(argv, _containerd_answers)


def _start_dockerd() -> subprocess.Popen[bytes]:
    argv = ["dockerd", "--host", SOCKET, "--storage-driver", "overlay2"]
    argv += ["--containerd", str(CONTAINERD_SOCKET)]
    argv += ["--data-root", str(PLACE / "data"), "--exec-root", str(PLACE / "exec")]
    argv += ["--pidfile", str(PLACE / "pid")]
    argv += ["--bridge", "none", "--iptables=false", "--ip6tables=false"]
    return _start(argv, _dockerd_answers)


def _containerd_answers() -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        return asking.connect_ex(str(CONTAINERD_SOCKET)) == 0


def _dockerd_answers() -> bool:
    asked = ["docker", "--host", SOCKET, "version"]
    try:
        done = subprocess.run(asked, capture_output=True, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        # It listens before it is ready to answer.
        return False
    except OSError as error:
        raise NoEngine(f"docker cannot be started: {error.strerror}") from error
    return done.returncode == 0


def _start(argv: list[str], answers: Callable[[], bool]) -> subprocess.Popen[bytes]:
    """Start a program that serves and wait until it answers; NoEngine has its last words."""
    name = argv[0]
    with (PLACE / f"{name}.log").open("wb") as output:
        try:
            serving = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT)
        except OSError as error:
            raise NoEngine(f"{name} cannot be started: {error.strerror}") from error
    try:
        if _wait_until(serving, answers):
            return serving
        code = serving.poll()
    except BaseException:
        _stop(serving)
        raise
    _stop(serving)
    late = f"did not answer within {START_S:g} s"
    raise NoEngine(f"{name} {late}\n{_last_words(name)}" if code is None else _death_of(serving))


def _wait_until(serving: subprocess.Popen[bytes], answers: Callable[[], bool]) -> bool:
    """Whether it answers before it ends or its time is over; it is asked at least once."""
    deadline_s = time.monotonic() + START_S
    while serving.poll() is None:
        if answers():
            return True
        if time.monotonic() > deadline_s:
            break
        time.sleep(POLL_S)
    return False


def _death_of(serving: subprocess.Popen[bytes]) -> str:
    assert isinstance(serving.args, list)
    name = str(serving.args[0])
    return f"{name} ended with exit code {serving.returncode}\n{_last_words(name)}"


def _last_words(name: str) -> str:
    text = (PLACE / f"{name}.log").read_text(errors="replace")
    return "\n".join(text.splitlines()[-LOG_LINES:])


def _run(command: list[str]) -> int:
    """Run the command, to which signals are passed on."""
    running = subprocess.Popen(command, env={**os.environ, "DOCKER_HOST": SOCKET})

    def pass_on(number: int, frame: FrameType | None) -> None:
        running.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, pass_on)
    code = running.wait()
    return code if code >= 0 else 128 - code


def _stop(serving: subprocess.Popen[bytes]) -> None:
    serving.terminate()
    try:
        serving.wait(STOP_S)
    except subprocess.TimeoutExpired:
        serving.kill()
        serving.wait()


def _docker(*words: str) -> None:
    _do("docker", "--host", SOCKET, *words)


def _do(*argv: str) -> None:
    """Run a program that must succeed; raises NoEngine with what it said."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoEngine(f"{argv[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise NoEngine(f"{' '.join(argv)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
