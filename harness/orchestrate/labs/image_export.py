"""Export of the container image, for the container engine inside User Mode Linux.

    this machine's engine --save--> image.tar --load--> the engine inside (harness.uml.engine)

The engine inside has one processor and an empty disk, so the image is built on this machine. The
same holds for compiled kernels, see `image_kernels`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file, engine

IMAGE_FILE = "image.tar"
DISK_BYTES = 8 << 30
"""Size of the disk inside; a run uses little more than twice the size of the image."""
SPACE_FACTOR = 3
"""Space for the file, for the engine's copy of the image, and for what containers write."""


def save_image(folder: Path) -> Path:
    """Write the image of the lab's containers to a file in `folder` and return it.

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
                f"containers inside another kernel need {needed >> 20} MiB in {folder}, "
                f"which has {free >> 20} MiB; set TMPDIR to another folder"
            )
        with file.open("wb") as output:
            for chunk in image.save(named=name):
                output.write(chunk)
    return file
