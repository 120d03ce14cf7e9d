"""Whether this machine has User Mode Linux, and the modules that belong to it."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "linux.uml"
PACKAGE = "user-mode-linux"
MODULES_ROOT = Path("/usr/lib/uml/modules")
_RELEASE = re.compile(r"\d+\.\d+[\w.+-]*")
_VERSION_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Kernel:
    """A User Mode Linux that can be started."""

    program: Path
    release: str
    modules: Path
    """The folder with modules.dep."""


class NoKernel(Exception):
    """There is no User Mode Linux here; the text says what to install."""


def find() -> Kernel:
    """Return this machine's User Mode Linux; raises NoKernel."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise NoKernel(f"{PROGRAM} is not installed; on Debian: apt-get install {PACKAGE}")
    try:
        told = subprocess.run(
            [found, "--version"], capture_output=True, timeout=_VERSION_TIMEOUT_S, check=False
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernel(f"{found} cannot be started: {error}") from error
    release = _RELEASE.search(told)
    if release is None:
        raise NoKernel(f"{found} does not say which kernel it is, but {told[:80]!r}")
    modules = MODULES_ROOT / release[0]
    if not (modules / "modules.dep").is_file():
        raise NoKernel(f"{found} is {release[0]}, and {modules} has no modules for it")
    return Kernel(Path(found), release[0], modules)


def has_module(kernel: Kernel, name: str) -> bool:
    """Whether a kernel has something as a module or built in."""
    lists = (kernel.modules / "modules.dep", kernel.modules / "modules.builtin")
    return any(f"/{name}.ko" in path.read_text() for path in lists if path.is_file())
