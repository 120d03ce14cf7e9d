"""Loading kernel modules by system call, since the machine around may have no `insmod`.

modules.dep:   net/bridge/bridge.ko: net/802/stp.ko net/llc/llc.ko
order:         llc, stp, bridge                         each after what it needs
"""

import ctypes
import errno
import os
from collections.abc import Iterable
from pathlib import Path

_FINIT_MODULE = 313
"""Its number among the system calls of x86-64."""


def load_order(dependencies: str, wanted: Iterable[str]) -> list[str]:
    """The files to load, in order; names that are no modules are taken to be built in.

    `dependencies` is the text of modules.dep: on each line a file, and what it needs, the nearest
    need first.
    """
    needs: dict[str, tuple[str, list[str]]] = {}
    for line in dependencies.splitlines():
        file, _, rest = line.partition(":")
        needs[Path(file).name.split(".")[0].replace("-", "_")] = (file, rest.split())
    files: dict[str, None] = {}
    for name in wanted:
        if name in needs:
            file, before = needs[name]
            files.update(dict.fromkeys([*reversed(before), file]))
    return list(files)


def load(folder: Path, wanted: Iterable[str]) -> None:
    """Load modules and what they need; OSError names the file that the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    for file in load_order((folder / "modules.dep").read_text(), wanted):
        descriptor = os.open(folder / file, os.O_RDONLY)
        try:
            if libc.syscall(_FINIT_MODULE, descriptor, b"", 0) != 0:
                code = ctypes.get_errno()
                if code != errno.EEXIST:
                    raise OSError(code, os.strerror(code), str(folder / file))
        finally:
            os.close(descriptor)
