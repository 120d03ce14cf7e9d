"""Compiled kernels for containers: where they look for them, and how they come to be there.

    a container of the image --compiles--> the volume of kernels, or a folder of this user's

A volume is the engine's. Who may look into it sees at once whether all is there already; for anyone
else a container looks. Refuses to know what is compiled: see `at_hand`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from windtunnel.driver.kernels.cache import cache_root
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file, engine
from windtunnel.harness.orchestrate.labs.containers import CODE_IN_CONTAINER
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.precompile.precompile import CACHE_VARIABLE
from windtunnel.harness.orchestrate.teardown.clean import Tell, on_stderr
from windtunnel.harness.orchestrate.teardown.state import NAME_PREFIX, LabState

PROGRAM = ("python", "-m", "windtunnel.harness.orchestrate.precompile.precompile")
FOLDER = "kernels-of-containers"
KERNELS_IN_CONTAINER = "/kernels"


def volume_name() -> str:
    """Return the name of the volume in which containers look for compiled kernels."""
    mounts = compose_file.plan(compose_file.read(), MID).mounts
    return next(each.source for each in mounts if each.target == KERNELS_IN_CONTAINER)


def compile_in_volume(tell: Tell = on_stderr) -> None:
    """Have everything in the volume. Raises LabError where the container cannot do it."""
    with engine.connection() as client:
        folder = _volume_folder(client)
        if not (_is_ours(folder) and precompile.are_in(folder)):
            _compile(client, volume_name(), "0:0", tell)


def compile_in_folder(tell: Tell = on_stderr) -> Path:
    """Have everything in a folder that this user may read; return it. Raises LabError likewise.

    That is the volume's own where this user may look into it, else one beside this machine's.
    """
    with engine.connection() as client:
        folder = _volume_folder(client)
        if not _is_ours(folder):
            folder = cache_root().parent / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
        if not precompile.are_in(folder):
            _compile(client, str(folder), f"{os.geteuid()}:{os.getegid()}", tell)
    return folder


def _volume_folder(client: engine.Client) -> Path:
    name = volume_name()
    labels = compose_file.shared_volumes(compose_file.read())[name]
    known = client.volumes.create(name, labels=labels).attrs
    # A folder that was given a volume's name is at the mount point only while somebody uses it.
    return Path((known.get("Options") or {}).get("device", known["Mountpoint"]))


def _is_ours(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def _compile(client: engine.Client, source: str, user: str, tell: Tell) -> None:
    image = compose_file.plan(compose_file.read(), MID).image
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
            tell(line)
            last = line
        code = container.wait()["StatusCode"]
    finally:
        container.remove(force=True)
    if code:
        raise LabError(f"{' '.join(PROGRAM)} in a container ended with exit code {code}: {last}")


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """What a container says, line by line; the engine cuts it wherever it likes."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
