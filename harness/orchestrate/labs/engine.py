"""Access to the container engine. No other module connects to it.

    label windtunnel.token   the lab of a container or a network
    label windtunnel.owner   the harness that created it, as in the lab's record
    label windtunnel.user    the effective user of that harness

All containers and networks have these labels, which identify them for removal. Neither the harness
nor the cleanup watchdog has to keep a list.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import docker
from docker.errors import DockerException, ImageNotFound, NotFound

from windtunnel.harness.artifact import regular_file
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import (
    MID,
    ApplicationRequest,
    LabApplication,
    LabError,
    Neighbor,
)
from windtunnel.harness.orchestrate.labs import application_container, compose_file, image_build
from windtunnel.harness.orchestrate.labs.application_container import (
    ApplicationContainer,
    mount_option,
)
from windtunnel.harness.orchestrate.labs.compose_file import Mount
from windtunnel.harness.orchestrate.labs.host_agent import CONTROL_VARIABLE
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog, state
from windtunnel.harness.orchestrate.teardown.state import NAME_PREFIX, LabState, started_ticks_of

TOKEN_LABEL = "windtunnel.token"
OWNER_LABEL = "windtunnel.owner"
USER_LABEL = "windtunnel.user"
CONTROL_IN_CONTAINER = "/control"
CONTROL_SOURCE = "control"
RUNS_SOURCE = "./runs"
BUILD_SCRIPT = ROOT / "docker" / "build.sh"
BUILD_TIMEOUT_S = 1800.0
ENGINE_TIMEOUT_S = 60
_DEFAULT_SOCKET = Path("/var/run/docker.sock")

Client: TypeAlias = docker.DockerClient
"""The type of an engine client, for modules that use one."""


def connect() -> docker.DockerClient:
    """Return a client of the container engine. Raises LabError if the engine does not respond."""
    _require_listener()
    try:
        client = docker.from_env(timeout=ENGINE_TIMEOUT_S)
    except DockerException as error:
        raise LabError(f"no container engine can be reached: {error}") from error
    try:
        client.ping()
    except (DockerException, OSError) as error:
        client.close()
        raise LabError(f"the container engine does not respond: {error}") from error
    return client


def _local_socket() -> Path | None:
    """Return the path of the local engine's socket, or None if a remote engine is used."""
    address = os.environ.get("DOCKER_HOST", "")
    if not address:
        return _DEFAULT_SOCKET
    return Path(address.removeprefix("unix://")) if address.startswith("unix://") else None


def _require_listener() -> None:
    """Raise LabError if no engine is listening on the local socket.

    This is checked before the SDK is used, which would leak its open sockets if no engine listens.
    """
    path = _local_socket()
    if path is None:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(ENGINE_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            raise LabError(f"no container engine listens on {path}: {error}") from error


@contextmanager
def connection() -> Iterator[docker.DockerClient]:
    """Connect to the engine for a `with` block. Engine errors in the block become LabErrors."""
    client = connect()
    try:
        yield client
    except (DockerException, OSError) as error:
        raise LabError(f"the container engine reported an error: {error}") from error
    finally:
        client.close()


def ensure_image(client: docker.DockerClient, image: str) -> None:
    """Build the container image if it is missing or outdated. Raises LabError if this fails.

    Without the program `docker`, an existing image is used unchanged.
    """
    if shutil.which("docker") is not None:
        process.run([str(BUILD_SCRIPT)], timeout_s=BUILD_TIMEOUT_S)
        return
    try:
        client.images.get(image)
    except ImageNotFound as error:
        raise LabError(
            f"the image {image} does not exist, and the program `docker`, which builds it, is not "
            "installed"
        ) from error


def labels_of_image(image: str) -> dict[str, str] | None:
    """Return the labels of an image, or None if this machine does not have it. Raises LabError if
    the engine does not respond.
    """
    with connection() as client:
        try:
            return dict(client.images.get(image).labels)
        except ImageNotFound:
            return None


class EphemeralContainers:
    """The containers and networks of one lab. `start` creates them, and `remove` removes them."""

    def __init__(self, lab: LabState, records: Path, places: Sequence[str], runs: Path) -> None:
        self._state = lab
        self._places = tuple(places)
        self._runs = runs
        self._record = records.resolve() / f"{lab.token}.json"
        self._control = control_folder(self._record)
        self._watchdog: CleanupWatchdog | None = None
        self._applications: list[ApplicationContainer] = []
        self._processes: dict[str, tuple[int, int]] = {}
        """The first process of each place, and when it was started."""

    def start(self) -> Path:
        document = compose_file.read()
        with connection() as client:
            ensure_image(client, compose_file.container_spec(document, MID).image)
            self._watchdog = CleanupWatchdog(
                [sys.executable, "-m", __name__, str(self._record)],
                env=dict(os.environ),
                cwd=ROOT,
            )
            self._make_control()
            # A mount point below a read-only mount must exist before the container starts.
            (ROOT / "runs").mkdir(exist_ok=True)
            for name, labels in compose_file.shared_volumes(document).items():
                client.volumes.create(name, labels=labels)
            options = compose_file.network_options(document)
            networks = self._each(
                [place for place in self._places if place != MID],
                lambda host: client.networks.create(
                    self._name(host),
                    driver="bridge",
                    options=options,
                    labels=labels_of(self._state),
                ),
            )
            containers = self._each(
                self._places,
                lambda place: self._create(
                    client, compose_file.container_spec(document, place), place
                ),
            )
            for network in networks[1:]:
                network.connect(containers[self._places.index(MID)])
            self._each(containers, lambda container: container.start())
        return self._control

    def _make_control(self) -> None:
        try:
            self._control.mkdir(mode=0o700, parents=True)
        except FileExistsError as error:
            raise LabError(
                f"{self._control}: a file or directory with this name already exists: remove it"
            ) from error

    @staticmethod
    def _each(items: Iterable[Any], work: Callable[[Any], Any]) -> list[Any]:
        """Call a function with each item concurrently, because the engine is slow."""
        with ThreadPoolExecutor(4) as executor:
            return list(executor.map(work, items))

    def _name(self, place: str) -> str:
        return f"{NAME_PREFIX}{self._state.token}-{place}"

    def _create(
        self, client: docker.DockerClient, plan: compose_file.ContainerSpec, place: str
    ) -> Any:
        return client.containers.create(
            plan.image,
            plan.command(place),
            name=self._name(place),
            hostname=place,
            network=self._name(self._places[0] if place == MID else place),
            cap_add=list(plan.cap_add),
            sysctls=plan.sysctls,
            shm_size=plan.shm_size_bytes,
            mounts=[mount_option(each) for each in self._placed(plan.mounts)],
            environment={CONTROL_VARIABLE: CONTROL_IN_CONTAINER},
            labels=labels_of(self._state),
            # An application on a host is in another container, and shares this memory.
            ipc_mode=None if place == MID else "shareable",
        )

    def start_application(
        self, name: str, place: str, request: ApplicationRequest
    ) -> LabApplication:
        """Start an application in a container that shares network and memory of a host's."""
        plan = compose_file.container_spec(compose_file.read(), place)
        code = self._placed(
            [each for each in plan.mounts if each.source not in (CONTROL_SOURCE, RUNS_SOURCE)]
        )
        container = ApplicationContainer(name, request, connect())
        self._applications.append(container)
        made = application_container.settings(
            request,
            host=self._name(place),
            name=f"{self._name(place)}.{len(self._applications)}",
            image=plan.image,
            labels=labels_of(self._state),
            code=[replace(each, read_only=True) for each in code],
            runs=Path(self._runs),
        )
        container.start(made)
        return container

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        """Build an image from a folder below `root`. Returns its name. Raises NotBuilt."""
        with connection() as client:
            return image_build.build_image(client, root, folder, log)

    def neighbor(self, place: str) -> Neighbor:
        """Return the container of a place."""
        return Neighbor(self._name(place), labels_of(self._state))

    @contextmanager
    def outside(self, place: str, directory: str) -> Iterator[Path]:
        """Open a directory of a container without following links in it, and yield its path on this
        machine. Raises LabError if this process may not read it, or if the engine is on another
        machine.
        """
        pid, started = self._processes.get(place, (0, 0))
        # Another process may get the id of one that has ended.
        if not pid or started_ticks_of(pid) != started:
            with connection() as client:
                pid = int(client.containers.get(self._name(place)).attrs["State"]["Pid"])
            self._processes[place] = pid, started_ticks_of(pid)
        root = Path("/proc", str(pid), "root")
        if not os.access(root / "dev/shm", os.R_OK | os.X_OK):
            text = f"the memory of host {place} cannot be read: it needs root, and an engine "
            raise LabError(f"{text}on this machine")
        with regular_file.folder_below(root, PurePath(directory)) as path:
            yield path

    def _placed(self, mounts: Sequence[Mount]) -> list[Mount]:
        """Return mounts of compose.yaml with the absolute paths of their folders, and with this
        lab's folders for `runs` and `control`.
        """
        sources = {CONTROL_SOURCE: str(self._control), RUNS_SOURCE: str(self._runs)}
        placed = []
        for mount in mounts:
            source = sources.get(mount.source, mount.source)
            if source.startswith("."):
                source = str((ROOT / source).resolve())
            placed.append(replace(mount, source=source))
        return placed

    def remove(self) -> None:
        if self._watchdog is None:
            return
        for each in self._applications:
            each.remove()
        self._applications.clear()
        with connection() as client:
            remove_labelled(client, f"{TOKEN_LABEL}={self._state.token}")
        shutil.rmtree(self._control, ignore_errors=True)
        self._watchdog.release(cleanup_watchdog.DONE)
        self._watchdog = None


def labels_of(owner: LabState) -> dict[str, str]:
    """Return the labels that identify a lab's containers and networks."""
    return {
        TOKEN_LABEL: owner.token,
        OWNER_LABEL: json.dumps(asdict(owner)),
        USER_LABEL: str(os.geteuid()),
    }


def control_folder(record: Path) -> Path:
    """Return the path of the folder with the sockets of a lab's agents, given the path of the lab's
    record.
    """
    return record.with_suffix(".control")


def remove_labelled(client: docker.DockerClient, label: str) -> list[str]:
    """Remove all containers and networks with the given label. Returns one line for each removal.

    Raises LabError if any of them still exist afterwards.
    """
    filters = {"label": label}
    containers = client.containers.list(all=True, filters=filters)
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(_remove_container, containers))
    networks = client.networks.list(filters=filters)
    for network in networks:
        try:
            network.remove()
        except NotFound:
            continue
    left = [
        *client.containers.list(all=True, filters=filters),
        *client.networks.list(filters=filters),
    ]
    if left:
        names = [each.name for each in left]
        raise LabError(f"containers or networks still exist after their removal: {names}")
    return [
        *(f"container {each.name}" for each in containers),
        *(f"network {each.name}" for each in networks),
    ]


def _remove_container(container: Any) -> None:
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return


def remove_leftovers() -> list[str]:
    """Remove the containers and networks of this user's harnesses that have died, one by one.

    Returns one line for each removal, or an empty list if no engine responds. If some could not be
    removed, raises NotAllRemoved after all others have been removed.
    """
    try:
        client = connect()
    except LabError:
        return []
    removed: list[str] = []
    problems: list[str] = []
    try:
        for kind, each, labels in _labelled(client):
            if not _is_left_over(labels):
                continue
            try:
                each.remove(force=True, v=True) if kind == "container" else each.remove()
                removed.append(f"{kind} {each.name}")
            except NotFound:
                continue
            except (DockerException, OSError) as error:
                problems.append(f"{kind} {each.name}: {error}")
    except (DockerException, OSError) as error:
        problems.append(f"the container engine reported an error: {error}")
    finally:
        client.close()
    if problems:
        raise clean.NotAllRemoved(removed, problems)
    return removed


def _labelled(client: docker.DockerClient) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield all containers and then all networks that were created by labs, each with its
    labels.
    """
    filters = {"label": TOKEN_LABEL}
    for each in client.containers.list(all=True, filters=filters, ignore_removed=True):
        yield "container", each, each.labels
    for each in client.networks.list(filters=filters):
        yield "network", each, each.attrs["Labels"]


def _is_left_over(labels: dict[str, str]) -> bool:
    """Return whether a container or network was created by a harness of this user that has died."""
    user = str(os.geteuid())
    return labels.get(USER_LABEL, user) == user and not owner_is_alive(labels.get(OWNER_LABEL, ""))


def owner_is_alive(label: str) -> bool:
    """Return whether the harness in a container's owner label is still running on this machine."""
    try:
        return state.parse(json.loads(label)).owner_is_alive()
    except (ValueError, RecursionError, state.RecordError):
        return False


def main(argv: list[str]) -> int:
    """Run a lab's cleanup watchdog: wait for the end of stdin, then remove the lab unless `DONE`
    was read.

    The argument is the path of the lab's record.
    """
    path = Path(argv[0])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read() == cleanup_watchdog.DONE:
        return 0
    with connection() as client:
        remove_labelled(client, f"{TOKEN_LABEL}={path.stem}")
    shutil.rmtree(control_folder(path), ignore_errors=True)
    clean.remove_recorded(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
