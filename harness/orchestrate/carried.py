"""What a container engine in another kernel needs of this machine's: the image, compiled kernels.

    this machine's engine --save--> image.tar --load--> the engine inside (harness.uml.engine)
    a container of the image --compiles--> a folder --bound--> its volume of kernels

Inside there is one processor and an empty disk, so whatever can be done out here is done here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harness.kernel import cache_root
from harness.orchestrate import compose_file, engine
from harness.orchestrate.lab import MID, LabError

IMAGE_FILE = "image.tar"
KERNELS_FOLDER = "kernels-of-containers"
KERNELS_VARIABLE = "WINDTUNNEL_KERNEL_CACHE"
KERNELS_IN_CONTAINER = "/kernels"
CLONE_IN_CONTAINER = "/windtunnel"
WARM_UP = "python -m harness.warm_up && python -m driver.warm_up"
DISK_BYTES = 8 << 30
"""The disk inside; what a run really takes of it is the image twice over and little more."""
ROOM_FACTOR = 3
"""Room for the file, for the engine's own copy of the image, and for what containers write."""


def save_image(folder: Path) -> Path:
    """Write the image of the lab's containers to a file in `folder` and return it.

    Raises LabError where there is no engine, no image, or no room.
    """
    document = compose_file.read()
    file = folder / IMAGE_FILE
    with engine.connection() as client:
        name = compose_file.plan(document, MID).image
        engine.ensure_image(client, name)
        image = client.images.get(name)
        needed = ROOM_FACTOR * int(image.attrs["Size"])
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise LabError(
                f"containers inside another kernel need {needed >> 20} MiB in {folder}, "
                f"which has {free >> 20} MiB; TMPDIR names another place"
            )
        with file.open("wb") as output:
            for chunk in image.save(named=name):
                output.write(chunk)
    return file


def kernels_volume() -> str:
    """Return the name of the volume in which containers look for compiled kernels."""
    mounts = compose_file.plan(compose_file.read(), MID).mounts
    return next(each.source for each in mounts if each.target == KERNELS_IN_CONTAINER)


def compile_kernels() -> Path:
    """Compile with the image's Python what is not compiled yet; return the folder of the results.

    That is the engine's own volume where this user may look into it, else a folder beside the
    kernels of this machine. Raises LabError where the container cannot do it.
    """
    document = compose_file.read()
    name = kernels_volume()
    with engine.connection() as client:
        labels = compose_file.shared_volumes(document)[name]
        volume = client.volumes.create(name, labels=labels)
        folder, source, user = Path(volume.attrs["Mountpoint"]), name, "0:0"
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            folder = cache_root().parent / KERNELS_FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            source, user = str(folder), f"{os.geteuid()}:{os.getegid()}"
        client.containers.run(
            compose_file.plan(document, MID).image,
            ["sh", "-c", WARM_UP],
            user=user,
            network_mode="none",
            environment={KERNELS_VARIABLE: KERNELS_IN_CONTAINER},
            volumes={
                str(compose_file.REPOSITORY): {"bind": CLONE_IN_CONTAINER, "mode": "ro"},
                source: {"bind": KERNELS_IN_CONTAINER, "mode": "rw"},
            },
            remove=True,
        )
    return folder
