"""Measures `docker compose up`: its time, and the kernels that its containers compile.

The image is built anew before, since docker/build.sh keeps an image with the kernels of an older
checkout. The cache of compiled kernels is a new volume, so each kernel that a container compiles is
a file in it.
"""

import os
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT_S = 900.0
IMAGE = "windtunnel:local"
_OVERRIDE = "volumes: {{kernels: {{name: {volume}}}}}\n"


class ComposeRun:
    """One run of the three main scenarios by `docker compose up`, in a project of its own.

    Raises CalledProcessError if the image cannot be built, or if the run does not exit with 0.
    """

    def __init__(self, folder: Path) -> None:
        project = f"windtunnel-bench-start-{os.getpid()}"
        self._volume = f"{project}-kernels"
        override = folder / "compose.yaml"
        override.write_text(_OVERRIDE.format(volume=self._volume), encoding="utf-8")
        files = ("--file", str(REPOSITORY / "compose.yaml"), "--file", str(override))
        self._compose = ("docker", "compose", "--project-name", project, *files)

    def took_s(self) -> float:
        """Return the wall time in seconds, from the command to its exit."""
        subprocess.run(
            ["docker", "image", "rm", "--force", IMAGE], check=False, capture_output=True
        )
        subprocess.run([str(REPOSITORY / "docker" / "build.sh")], check=True, timeout=TIMEOUT_S)
        started_s = time.monotonic()
        self._run(*self._compose, "up", "--no-color", "--exit-code-from", "harness")
        return time.monotonic() - started_s

    def compiled(self) -> float:
        """Return how many kernels the containers compiled, and remove them and the volume."""
        find = ("find", "/kernels", "-name", "*.image")
        mount = ("--volume", f"{self._volume}:/kernels:ro")
        found = self._run("docker", "run", "--rm", *mount, IMAGE, *find)
        self._run(*self._compose, "down", "--volumes", "--timeout", "1")
        return float(len(found.splitlines()))

    @staticmethod
    def _run(*argv: str) -> str:
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
        ).stdout
