"""Starts a container engine inside User Mode Linux, and runs a command that needs it.

    python -m windtunnel.harness.uml.engine IMAGE VOLUME FOLDER COMMAND...

    disk --> control groups --> containerd, dockerd --> image, volume --> the command --> the end
    /dev/ubda                                            |
                                   IMAGE: a file that `docker save` wrote
                                   VOLUME: its name; its files are those of FOLDER, shared with
                                           the machine outside

The engine uses a temporary, empty disk. It installs no firewall rules, because a lab's containers
only communicate with each other, over bridges. dockerd would start containerd itself, but with a
timeout of fifteen seconds, which is too short on a slow machine. The exit code is the command's
exit code, or 3 if the engine cannot be started.
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
"""Kernel modules that the container engine needs in addition to those of a namespace lab."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CANNOT_START = 3
START_S = 240.0
"""Startup timeout in seconds, for containerd and dockerd each."""
STOP_S = 30.0
ANSWER_S = 30.0
POLL_S = 0.1
LOG_LINES = 5
_GROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = Path("/proc/cgroups")


class NoEngine(Exception):
    """Raised if the container engine cannot be started. The message gives the reason."""


def main(argv: list[str]) -> int:
    """Start the container engine, run the given command, and stop the engine. Returns the exit
    code.
    """
    image, volume, folder, *command = argv
    started: list[subprocess.Popen[bytes]] = []
    for number in SIGNALS:
        signal.signal(number, _leave)
    try:
        _mount_all()
        started.append(_start_containerd())
        started.append(_start_dockerd())
        _docker("load", "--quiet", "--input", image)
        bound = ("type=none", "o=bind", f"device={folder}")
        options = [word for each in bound for word in ("--opt", each)]
        _docker("volume", "create", *options, volume)
        return _run(command)
    except NoEngine as error:
        exits = [_exit_text(each) for each in started if each.poll() is not None]
        text = "\n".join([str(error), *exits])
        print(
            f"windtunnel: no container engine inside the kernel: {text}",
            file=sys.stderr,
            flush=True,
        )
        return CANNOT_START
    finally:
        for daemon in reversed(started):
            _stop(daemon)


def _leave(number: int, frame: FrameType | None) -> None:
    """Exit on a signal that arrives before the command has started. The exit also stops the
    engine.
    """
    sys.exit(128 + number)


def controllers(table: str) -> list[str]:
    """Return the names of the enabled control group controllers in the text of /proc/cgroups."""
    rows = [line.split() for line in table.splitlines() if not line.startswith("#")]
    return [row[0] for row in rows if len(row) == 4 and row[3] == "1"]


def _mount_all() -> None:
    """Mount the engine's disk and the control groups."""
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
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(CONTAINERD_SOCKET)) == 0


def _dockerd_answers() -> bool:
    command = ["docker", "--host", SOCKET, "version"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        # dockerd accepts connections before it can respond.
        return False
    except OSError as error:
        raise NoEngine(f"cannot start docker: {error.strerror}") from error
    return done.returncode == 0


def _start(argv: list[str], answers: Callable[[], bool]) -> subprocess.Popen[bytes]:
    """Start a daemon and wait until it responds. Raises NoEngine with the end of its log."""
    name = argv[0]
    with (PLACE / f"{name}.log").open("wb") as output:
        try:
            daemon = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT)
        except OSError as error:
            raise NoEngine(f"cannot start {name}: {error.strerror}") from error
    try:
        if _wait_until(daemon, answers):
            return daemon
        code = daemon.poll()
    except BaseException:
        _stop(daemon)
        raise
    _stop(daemon)
    late = f"did not respond within {START_S:g} s"
    raise NoEngine(
        f"{name} {late}\n{_last_log_lines(name)}" if code is None else _exit_text(daemon)
    )


def _wait_until(daemon: subprocess.Popen[bytes], answers: Callable[[], bool]) -> bool:
    """Wait until a daemon responds. Returns False if it ends first or does not respond in time."""
    deadline_s = time.monotonic() + START_S
    while daemon.poll() is None:
        if answers():
            return True
        if time.monotonic() > deadline_s:
            break
        time.sleep(POLL_S)
    return False


def _exit_text(daemon: subprocess.Popen[bytes]) -> str:
    assert isinstance(daemon.args, list)
    name = str(daemon.args[0])
    return f"{name} ended with exit code {daemon.returncode}\n{_last_log_lines(name)}"


def _last_log_lines(name: str) -> str:
    text = (PLACE / f"{name}.log").read_text(errors="replace")
    return "\n".join(text.splitlines()[-LOG_LINES:])


def _run(command: list[str]) -> int:
    """Run the command and forward signals to it. Returns its exit code."""
    running = subprocess.Popen(command, env={**os.environ, "DOCKER_HOST": SOCKET})

    def forward(number: int, frame: FrameType | None) -> None:
        running.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, forward)
    # A handler whose signal arrives just before `wait` blocks is called only when it returns.
    while (code := running.poll()) is None:
        time.sleep(POLL_S)
    return code if code >= 0 else 128 - code


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(STOP_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _docker(*arguments: str) -> None:
    _do("docker", "--host", SOCKET, *arguments)


def _do(*argv: str) -> None:
    """Run a program that must succeed. Raises NoEngine with the program's stderr."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoEngine(f"cannot start {argv[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise NoEngine(f"{' '.join(argv)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
