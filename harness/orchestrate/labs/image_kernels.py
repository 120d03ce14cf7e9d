"""Compiled kernels for containers, and the volume or folder that contains them.

    a container of the image --compiles--> the kernel volume, or a folder of this user

The volume belongs to the engine. If this user has access to its folder, a file in it shows whether
the kernels are complete. Otherwise a container checks that. `precompile` defines what is compiled.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from windtunnel.driver.kernels.cache import copy_to
from windtunnel.driver.kernels.sources import CACHE_VARIABLE, cache_root
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file, engine
from windtunnel.harness.orchestrate.labs.compose_file import CODE_IN_CONTAINER
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.teardown.clean import Report, print_to_stderr
from windtunnel.harness.orchestrate.teardown.state import NAME_PREFIX, LabState

PROGRAM = ("python", "-m", "windtunnel.harness.orchestrate.precompile.precompile")
FOLDER = "kernels-of-containers"
KERNELS_IN_CONTAINER = "/kernels"


def volume_name() -> str:
    """Return the name of the container volume that stores the compiled kernels."""
    mounts = compose_file.container_spec(compose_file.read(), MID).mounts
    return next(each.source for each in mounts if each.target == KERNELS_IN_CONTAINER)


def compile_in_volume(report: Report = print_to_stderr) -> None:
    """Compile missing kernels into the container volume for kernels. Raises LabError if the
    container fails.

    The contents of this machine's kernel cache are copied first. Containers can use them if they
    have the same version of Python.
    """
    with engine.connection() as client:
        folder = _volume_folder(client)
        if not _is_accessible(folder):
            _compile(client, volume_name(), "0:0", report)
        elif not precompile.is_complete(folder):
            copy_to(folder)
            _compile(client, volume_name(), "0:0", report)


def compile_in_folder(report: Report = print_to_stderr) -> Path:
    """Compile missing kernels into a folder that this user can access. Returns the folder.

    This is the volume's folder if this user has access to it. Otherwise it is a folder next to this
    machine's kernel cache. Raises LabError if the container fails.
    """
    with engine.connection() as client:
        folder = _volume_folder(client)
        if not _is_accessible(folder):
            folder = cache_root().parent / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
        if not precompile.is_complete(folder):
            copy_to(folder)
            _compile(client, str(folder), f"{os.geteuid()}:{os.getegid()}", report)
    return folder


def _volume_folder(client: engine.Client) -> Path:
    name = volume_name()
    labels = compose_file.shared_volumes(compose_file.read())[name]
    known = client.volumes.create(name, labels=labels).attrs
    # A volume that is bound to a folder is mounted only while a container uses it.
    return Path((known.get("Options") or {}).get("device", known["Mountpoint"]))


def _is_accessible(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def _compile(client: engine.Client, source: str, user: str, report: Report) -> None:
    image = compose_file.container_spec(compose_file.read(), MID).image
    engine.ensure_image(client, image)
    owner = LabState(token=secrets.token_hex(4), run_id="kernels", kind="compose")
    container = client.containers.create(
        image,
        list(PROGRAM),
        name=f"{NAME_PREFIX}{owner.token}-kernels",
        user=user,
        network_mode="none",
        environment={CACHE_VARIABLE: KERNELS_IN_CONTAINER},
        volumes={
            str(ROOT): {"bind": str(CODE_IN_CONTAINER), "mode": "ro"},
            source: {"bind": KERNELS_IN_CONTAINER, "mode": "rw"},
        },
        labels=engine.labels_of(owner),
    )
    try:
        container.start()
        last = ""
        for line in _lines(container.logs(stream=True, follow=True)):
            report(line)
            last = line
        code = container.wait()["StatusCode"]
    finally:
        container.remove(force=True)
    if code:
        raise LabError(f"{' '.join(PROGRAM)} in a container ended with exit code {code}: {last}")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Split a container's output, which the engine delivers in arbitrary pieces, into lines."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
