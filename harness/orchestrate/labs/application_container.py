"""An application, or a driver, in a container of its own, which shares the network and the memory
of its host.

    container of host b   [agent, driver]        network, /dev/shm  ---- shared
    container of one      [init -> application]                          with each other

It has no capabilities and cannot gain any, does not see the processes of its host, and cannot write
to the scenario's folder. It is root, unless the scenario names another user. Its output goes
directly from the engine to its log, whose length is limited; the engine stores none of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException, ImageNotFound

from windtunnel.harness.artifact.run.manifest import CANNOT_START, LOG_LOST, LOG_TOO_LONG
from windtunnel.harness.orchestrate.applications import launcher
from windtunnel.harness.orchestrate.lab import ApplicationRequest, LabError
from windtunnel.harness.orchestrate.labs.compose_file import (
    SCENARIO_IN_CONTAINER,
    WORK_IN_CONTAINER,
    Mount,
)
from windtunnel.harness.orchestrate.processes.process import tail_of

NOT_FOUND_CODES = (126, 127)
"""Exit codes of a container whose command cannot be executed, as shells report them."""
INIT_FAILURE = re.compile(r"\[FATAL tini [^\]]*\] exec (.{1,200}) failed: (.{1,200})")
"""What the init process of the container prints if it cannot execute the command."""
SIGNAL_BASE = 128
PROCESSES_MAX = 4096
"""Maximum number of processes and threads of an application, unless the scenario says otherwise."""
_NANO_PER_MILLI = 1_000_000
_END_TIMEOUT_S = 60.0
_POLL_S = 0.01


@dataclass
class ApplicationContainer:
    """The container of an application. Implements `LabProcess`."""

    name: str
    request: ApplicationRequest
    client: docker.DockerClient
    _container: Any = None
    _output: Any = None
    _problem: tuple[str, str] = ("", "")
    _code: int | None = None
    _is_paused: bool = False
    _is_removed: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, settings: Mapping[str, Any]) -> None:
        """Create and start the container, with settings that depend on its host. A container that
        cannot be started has a problem and has ended.
        """
        request = self.request
        if request.work is not None:
            _make_work_folder(request.work, is_others=bool(request.user))
        try:
            self._container = self.client.containers.create(
                command=list(request.command) or None,
                environment=dict(request.env),
                init=True,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                # The files of a driver can only be used by the driver's user, or by its group.
                user=request.user or "0:0",
                group_add=["0"],
                log_config={"type": "none"},
                mem_limit=request.memory_bytes or None,
                # No swap in addition.
                memswap_limit=request.memory_bytes or None,
                nano_cpus=request.milli_cpus * _NANO_PER_MILLI or None,
                pids_limit=request.processes_max or PROCESSES_MAX,
                **settings,
            )
            self._output = self._container.attach(stdout=True, stderr=True, stream=True)
            self._container.start()
        except ImageNotFound:
            self._fail(CANNOT_START, absent_text(settings["image"]))
        except (DockerException, OSError) as error:
            self._fail(CANNOT_START, _reason(error))
        else:
            for work in (self._copy, self._await_end):
                self._threads.append(threading.Thread(target=work, daemon=True))
                self._threads[-1].start()

    def _fail(self, problem: str, text: str) -> None:
        self._close_output()
        self._problem = problem, text
        self._code = NOT_FOUND_CODES[0]

    def _close_output(self) -> None:
        if self._output is not None:
            with contextlib.suppress(OSError, DockerException):
                self._output.close()
                # The stream shuts its socket down, but leaves it open.
                self._output._response.close()

    def _copy(self) -> None:
        """Append the application's output to its log, and kill it if the log becomes too long or
        cannot be written.
        """
        limit = self.request.log_bytes_max
        try:
            with self.request.log.open("ab", buffering=0) as file:
                room = limit - file.tell()
                for data in self._pieces():
                    launcher.write_whole(file, data[: max(0, room)])
                    room -= len(data)
                    if room < 0:
                        self._end(LOG_TOO_LONG, f"the log exceeds {limit} bytes")
                        break
        except OSError as error:
            self._end(LOG_LOST, launcher.lost_text(error))
        self._close_output()

    def _pieces(self) -> Iterator[bytes]:
        """Yield the application's output. Ends it if the engine does not deliver the output."""
        try:
            yield from self._output
        # The engine's client raises errors of several libraries.
        except Exception as error:
            if not self._is_removed:
                self._end(LOG_LOST, f"the engine has not delivered its output: {_reason(error)}")

    def _end(self, problem: str, text: str) -> None:
        self._problem = problem, text
        with contextlib.suppress(DockerException, OSError):
            self._container.kill()

    def _await_end(self) -> None:
        try:
            code = int(self._container.wait(timeout=None)["StatusCode"])
        except (DockerException, OSError, ValueError):
            code = SIGNAL_BASE + signal.SIGKILL  # It was removed.
        self._threads[0].join(_END_TIMEOUT_S)
        if self._threads[0].is_alive():
            self._problem = LOG_LOST, "the engine has not delivered the end of its output"
        found = INIT_FAILURE.search(tail_of(self.request.log, 1))
        if found is not None and code in NOT_FOUND_CODES:
            text = f"{found[1]!r} cannot be executed in its image: {found[2]}"
            self._problem = CANNOT_START, text
        # The engine reports the end by signal N as 128 + N, as shells do.
        is_signal = SIGNAL_BASE < code < SIGNAL_BASE + signal.NSIG
        self._code = SIGNAL_BASE - code if is_signal else code

    def poll(self) -> int | None:
        return self._code

    def wait(self, timeout_s: float) -> int | None:
        deadline_s = time.monotonic() + timeout_s
        while self._code is None and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal to the application. SIGSTOP and SIGCONT reach all its processes."""
        if number == signal.SIGSTOP:
            self._ask(lambda: self._container.pause())
            self._is_paused = True
        elif number == signal.SIGCONT:
            self._continue()
        else:
            self._ask(lambda: self._container.kill(signal=int(number)))

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._continue()
        self.send_signal(signal.SIGKILL)
        self.wait(_END_TIMEOUT_S)

    def _continue(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._ask(lambda: self._container.unpause())

    def _ask(self, what: Any) -> None:
        """Ask the engine for something, unless the application has ended."""
        if self._code is not None:
            return
        try:
            what()
        except (DockerException, OSError) as error:
            if self.wait(1.0) is None:
                raise LabError(f"{self.name}: the engine reported: {_reason(error)}") from error

    def tail(self, lines: int = 5) -> str:
        """Return the last lines of the application's log, or why it was killed or has none."""
        return self._problem[1] or tail_of(self.request.log, lines)

    def problem(self) -> tuple[str, str]:
        """Return why the application was killed or could not be started, as a keyword and a text.
        Both are empty if it did neither.
        """
        return self._problem

    def remove(self) -> None:
        """Remove the container. Its output that was not copied yet is lost."""
        self._is_removed = True
        if self._container is not None:
            # The lab removes all of its containers again, and verifies it.
            with contextlib.suppress(DockerException, OSError):
                self._container.remove(force=True, v=True)
        for thread in self._threads:
            thread.join(_END_TIMEOUT_S)
        self.client.close()


def absent_text(image: str) -> str:
    """Return the reason why an image that this machine does not have cannot be used."""
    return f"there is no image {image!r} on this machine: build it, or use `docker pull`"


def _reason(error: Exception) -> str:
    """Return what the engine has reported, in one line."""
    text = getattr(error, "explanation", None) or str(error)
    return " ".join(str(text).split())


def settings(
    request: ApplicationRequest,
    *,
    host: str,
    name: str,
    image: str,
    labels: Mapping[str, str],
    code: Sequence[Mount],
    runs: Path,
) -> dict[str, Any]:
    """Return the settings of a container that depend on its host, and on whose image it has.

    It has no access to the folders of runs and of the lab's own sockets, which `runs` contains.
    """
    seen = [] if request.image else [*code]
    if request.scenario is not None:
        # The folder of the scenario may be one of those of the code.
        seen.append(Mount(str(request.scenario), SCENARIO_IN_CONTAINER, read_only=True))
    work = [] if request.work is None else [Mount(str(request.work), WORK_IN_CONTAINER)]
    found: dict[str, Any] = {
        "image": request.image or image,
        "name": name,
        "network_mode": f"container:{host}",
        "ipc_mode": f"container:{host}",
        "labels": dict(labels),
        "mounts": [mount_option(each) for each in (*seen, *work)],
    }
    if not request.image:
        found["working_dir"] = (
            SCENARIO_IN_CONTAINER if request.starts_in_scenario else WORK_IN_CONTAINER
        )
        found["read_only"] = True
        found["tmpfs"] = {"/tmp": "size=64m"}
    elif request.working_dir:
        found["working_dir"] = request.working_dir
    folders = [each for each in seen if not each.is_volume]
    hidden = {each.target: _below(runs, each.source) for each in folders}
    covers = {f"{target}/{path}": "ro,size=4k" for target, path in hidden.items() if path}
    if covers:
        found["tmpfs"] = found.get("tmpfs", {}) | covers
    return found


def mount_option(mount: Mount) -> docker.types.Mount:
    """Return a mount as an option of a container. The text `source:target` of `docker run --volume`
    would not do, because a path may contain a colon.
    """
    kind = "volume" if mount.is_volume else "bind"
    return docker.types.Mount(mount.target, mount.source, type=kind, read_only=mount.read_only)


def _below(runs: Path, source: str) -> str:
    """Return the path of the folder of runs below a folder that a container sees, or an empty
    string if it is elsewhere.

    Raises LabError if the container would see a part of it.
    """
    runs, folder = runs.resolve(), Path(source).resolve()
    if folder.is_relative_to(runs):
        text = f"{folder}: an application would have access to the runs in {runs}"
        raise LabError(f"{text}: expected the scenario in another folder")
    return str(runs.relative_to(folder)) if runs.is_relative_to(folder) else ""


def _make_work_folder(folder: Path, *, is_others: bool) -> None:
    """Create the folder of an application, in which its user can write: root without capabilities,
    unless `is_others`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or is_others:
        folder.chmod(0o777)
