"""What a container engine in another kernel needs of this machine's: the image.

    this machine's engine --save--> image.tar --load--> the engine inside (harness.uml.engine)

Inside there is one processor and an empty disk, so whatever can be done out here is done here; for
compiled kernels, too: see `image_kernels`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from windtunnel.harness.orchestrate.lab import MID, LabError
from windtunnel.harness.orchestrate.labs import compose_file, engine

IMAGE_FILE = "image.tar"
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
