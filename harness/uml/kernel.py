"""Finds the installed User Mode Linux kernel and its modules."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "linux.uml"
PACKAGE = "user-mode-linux"
MODULES_ROOT = Path("/usr/lib/uml/modules")
PROCESSORS = Path("/proc/cpuinfo")
_RELEASE = re.compile(r"(\d+)\.(\d+)[\w.+-]*")
_AMX = re.compile(r"^flags\b.*\bamx_tile\b", re.MULTILINE)
_FIRST_WITH_AMX = (6, 13)
"""First release that has space for all registers of a processor with AMX. Kernel 6.1 aborts in
`put_fp_registers` when it starts its first process.
"""
_VERSION_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Kernel:
    """An installed User Mode Linux kernel."""

    program: Path
    release: str
    modules: Path
    """The folder that contains modules.dep."""


class NoKernel(Exception):
    """Raised if User Mode Linux cannot be used on this machine. The message says why and what to
    install.
    """


def find() -> Kernel:
    """Find the installed User Mode Linux kernel. Raises NoKernel if it is missing or cannot be
    used.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        raise NoKernel(f"{PROGRAM} is not installed: on Debian, run apt-get install {PACKAGE}")
    try:
        output = subprocess.run(
            [found, "--version"], capture_output=True, timeout=_VERSION_TIMEOUT_S, check=False
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernel(f"cannot start {found}: {error}") from error
    release = _RELEASE.search(output)
    if release is None:
        raise NoKernel(f"{found} --version: expected a kernel release, found {output[:80]!r}")
    if (int(release[1]), int(release[2])) < _FIRST_WITH_AMX and _has_amx():
        raise NoKernel(
            f"{found} has the release {release[0]}, which cannot run on a processor with AMX: "
            f"use another machine, or a kernel from {'.'.join(map(str, _FIRST_WITH_AMX))}"
        )
    modules = MODULES_ROOT / release[0]
    if not (modules / "modules.dep").is_file():
        raise NoKernel(f"{found} has the release {release[0]}, but {modules} has no modules for it")
    return Kernel(Path(found), release[0], modules)


def _has_amx() -> bool:
    """Return whether the registers of the processors include AMX tiles."""
    try:
        return _AMX.search(PROCESSORS.read_text(errors="replace")) is not None
    except OSError:
        return False


def has_module(kernel: Kernel, name: str) -> bool:
    """Return whether a User Mode Linux kernel has a feature, either built in or as a module."""
    lists = (kernel.modules / "modules.dep", kernel.modules / "modules.builtin")
    return any(f"/{name}.ko" in path.read_text() for path in lists if path.is_file())
