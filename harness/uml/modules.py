"""Loads kernel modules by system call, because the machine may lack `insmod`.

modules.dep:   net/bridge/bridge.ko: net/802/stp.ko net/llc/llc.ko
order:         llc, stp, bridge                         each after its dependencies
"""

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

_FINIT_MODULE = 313
"""Number of the system call on x86-64."""


def load_order(dependencies: str, names: Iterable[str]) -> list[str]:
    """Return the module files to load, each after its dependencies. A module without a file is
    assumed to be built into the kernel.

    `dependencies` is the content of modules.dep. Each line has a file and its dependencies,
    starting with the direct ones.
    """
    needs: dict[str, tuple[str, list[str]]] = {}
    for line in dependencies.splitlines():
        file, _, rest = line.partition(":")
        needs[Path(file).name.split(".")[0].replace("-", "_")] = (file, rest.split())
    files: dict[str, None] = {}
    for name in names:
        if name in needs:
            file, before = needs[name]
            files.update(dict.fromkeys([*reversed(before), file]))
    return list(files)


def load(folder: Path, names: Iterable[str]) -> None:
    """Load modules and their dependencies. Raises an OSError that names the failed file."""
    libc = ctypes.CDLL(None, use_errno=True)
    for file in load_order((folder / "modules.dep").read_text(), names):
        descriptor = os.open(folder / file, os.O_RDONLY)
        try:
            if libc.syscall(_FINIT_MODULE, descriptor, b"", 0) != 0:
                code = ctypes.get_errno()
                if code != errno.EEXIST:
                    raise OSError(code, os.strerror(code), str(folder / file))
        finally:
            os.close(descriptor)
