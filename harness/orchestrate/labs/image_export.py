"""Export of the container image to the container engine in User Mode Linux.

    this machine's engine --save--> image.tar --load--> the engine inside (harness.uml.engine)

The engine in User Mode Linux has one processor and an empty disk, so the image is built on this
machine. For the same reason, kernels are compiled on this machine (see `image_kernels`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file, engine

IMAGE_FILE = "image.tar"
DISK_BYTES = 8 << 30
"""Size of the disk in User Mode Linux. A run uses little more than twice the image size."""
SPACE_FACTOR = 3
"""Required space as a multiple of the image size. It covers the file, the engine's copy of the
image, and what containers write."""


def save_image(folder: Path) -> Path:
    """Write the lab's container image to a file in `folder`. Returns the file's path.

    Raises LabError if there is no engine, no image, or not enough free space.
    """
    document = compose_file.read()
    file = folder / IMAGE_FILE
    with engine.connection() as client:
        name = compose_file.container_spec(document, MID).image
        engine.ensure_image(client, name)
        image = client.images.get(name)
        needed = SPACE_FACTOR * int(image.attrs["Size"])
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise LabError(
                f"containers in User Mode Linux need {needed >> 20} MiB in {folder}, "
                f"which has only {free >> 20} MiB free: set TMPDIR to another folder"
            )
        with file.open("wb") as output:
            for chunk in image.save(named=name):
                output.write(chunk)
    return file
