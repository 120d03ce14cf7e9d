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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import docker
from docker.errors import DockerException, ImageNotFound, NotFound

from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import (
    LabError,
)
from windtunnel.harness.orchestrate.processes import process
from windtunnel.harness.orchestrate.teardown import clean, cleanup_watchdog, state
from windtunnel.harness.orchestrate.teardown.state import LabState

TOKEN_LABEL = "windtunnel.token"
OWNER_LABEL = "windtunnel.owner"
USER_LABEL = "windtunnel.user"
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
