"""The on-disk cache of compiled kernels, with one directory for each version of a module.

    <root>/<module>-<digest of sources, numba, Python, processor, flags>/<function>-….image

A changed kernel is never loaded from the cache, and an unchanged kernel is never compiled twice,
not even in a checkout at another path.

Compiled kernels are code. A cache directory that other users can write to is an error.

Root: `WINDTUNNEL_KERNEL_CACHE`, else `$XDG_CACHE_HOME/windtunnel/kernels`, else
`~/.cache/windtunnel/kernels`. Kernels that are not there are loaded from the installed package
`windtunnel_kernels`, which has the same layout and is never modified.
"""

import atexit
import errno
import hashlib
import importlib.util
import os
import secrets
import shutil
import stat
import sys
from functools import cache
from pathlib import Path

from windtunnel.driver.kernels import processor
from windtunnel.driver.kernels.sources import CACHE_VARIABLE, FILE_NAME, Sources, cache_root

PREBUILT = "windtunnel_kernels"
"""Name of the optional package that contains compiled kernels."""
MODE = 0o700
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class KernelCacheError(OSError):
    """The kernel cache cannot be trusted, because other users can write to its directory."""


@cache
def prebuilt_root() -> Path | None:
    """Return the directory of the installed `windtunnel_kernels` package, or None if it is not
    installed.
    """
    found = importlib.util.find_spec(PREBUILT)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations)))


def prebuilt_counts() -> tuple[int, int]:
    """Count the modules in the `windtunnel_kernels` package that match the current sources, and
    those that do not. Both counts are 0 if the package is not installed.
    """
    root = prebuilt_root()
    if root is None:
        return 0, 0
    stored = {path.name for path in root.iterdir() if path.is_dir() and "-" in path.name}
    known = sources()
    current = {directory_name(file, known.module_of(file)) for file in known.files()}
    # The package can support several levels of x86-64, with one directory per module and level.
    modules, matching = ({name.rsplit("-", 1)[0] for name in names}
                         for names in (stored, stored & current))  # fmt: skip
    return len(matching), len(modules - matching)


@cache
def require_trusted(directory: Path) -> None:
    """Raise KernelCacheError if other users could have written compiled kernels to a directory.

    The directory must belong to this user or to root, and no other user may be able to write to it.
    A directory that does not exist is trusted because it will be created with mode 0700.
    """
    try:
        found = directory.stat()
    except FileNotFoundError:
        return
    if found.st_uid in (os.geteuid(), 0) and not found.st_mode & _OTHERS_MAY_WRITE:
        return
    raise KernelCacheError(
        f"kernel cache {directory}: expected a directory that belongs to user {os.geteuid()} and "
        f"that no other user can write to, found owner {found.st_uid} and mode "
        f"{stat.S_IMODE(found.st_mode):04o}; delete it, or set another directory in "
        f"{CACHE_VARIABLE}"
    )


@cache
def sources() -> Sources:
    """Return the source digests of all modules. Newly computed digests are saved when the process
    exits.
    """
    found = Sources(store=cache_root() / FILE_NAME)
    atexit.register(found.save)
    return found


@cache
def _compiler_version() -> str:
    """Return a digest of the version files of numba and llvmlite, without importing either."""
    found = hashlib.sha256()
    for package in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise ImportError(f"the package {package} is not installed")
        found.update((Path(spec.origin).parent / "_version.py").read_bytes())
    return found.hexdigest()


def directory_name(file: Path, module: str) -> str:
    """Return the name of the cache directory for a module's compiled kernels."""
    bounds_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
    # Machine code calls Python's C API, which is stable within a minor version.
    setting = (sys.version_info[:2], _compiler_version(), processor.target(), bounds_checked)
    digest = hashlib.sha256(repr(setting).encode())
    digest.update(sources().digest(file).encode())
    return f"{module}-{digest.hexdigest()[:24]}"


def copy_to(target: Path) -> int:
    """Copy the compiled kernels that match the current sources to another cache directory.

    Kernels of modules that have changed since compilation are not copied. Existing directories in
    the target are not replaced. Returns the number of directories copied. Raises OSError.
    """
    require_trusted(cache_root())
    count = 0
    known = sources()
    for file in known.files():
        name = directory_name(file, known.module_of(file))
        source = cache_root() / name
        if source.is_dir() and not (target / name).exists():
            partial = target / f".{name}.{secrets.token_hex(8)}"
            shutil.copytree(source, partial)
            try:
                partial.rename(target / name)
            except OSError as error:
                shutil.rmtree(partial)
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                continue  # Another process has copied it meanwhile.
            count += 1
    return count
