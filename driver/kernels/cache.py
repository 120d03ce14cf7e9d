"""The cache of compiled kernels, with one directory per version of a module, outside the source
tree.

    <root>/<module>-<digest of sources, numba, Python, flags>/<function>.nbi, .nbc

A changed kernel is never loaded from the cache, and an unchanged kernel is never compiled twice,
not even in a checkout at another path. numba's own cache uses the path of the source file as its
key and misses a change in a callee that another file defines.

Compiled kernels are code. A cache directory that other users can write to is an error.

Root: `WINDTUNNEL_KERNEL_CACHE`, else `$XDG_CACHE_HOME/windtunnel/kernels`, else
`~/.cache/windtunnel/kernels`. Kernels that the root does not have are loaded from the installed
package `windtunnel_kernels`, which has the same layout and is never written.
"""

import atexit
import fcntl
import hashlib
import importlib.util
import os
import pickle
import secrets
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite
import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)

from windtunnel.driver.kernels.sources import CACHE_VARIABLE, FILE_NAME, Sources, cache_root

PREBUILT = "windtunnel_kernels"
"""Name of the package of compiled kernels."""
LOCK_FILE = "lock"
"""The lock file in each directory of compiled kernels. A process locks it while it saves to the
directory.
"""
MODE = 0o700
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_UNREADABLE = (
    pickle.UnpicklingError,
    AttributeError,
    EOFError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)
"""Exceptions that unpickling raises for damaged data. Source: Python's pickle."""


class KernelCacheError(OSError):
    """Other users can write to the cache directory."""


@cache
def prebuilt_root() -> Path | None:
    """Return the directory of the package of compiled kernels, or None if none is installed."""
    found = importlib.util.find_spec(PREBUILT)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations)))


def prebuilt_counts() -> tuple[int, int]:
    """Return how many modules of the package of compiled kernels match the current sources, and
    how many do not. Both are 0 if the package is not installed.
    """
    root = prebuilt_root()
    if root is None:
        return 0, 0
    stored = {path.name for path in root.iterdir() if path.is_dir() and "-" in path.name}
    known = sources()
    current = {directory_name(file, known.module_of(file)) for file in known.files()}
    return len(stored & current), len(stored - current)


@cache
def require_trusted(directory: Path) -> None:
    """Raise KernelCacheError if other users could have written code to a directory.

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
    """Return the source digests of all modules. New summaries are saved when the process exits."""
    found = Sources(store=cache_root() / FILE_NAME)
    atexit.register(found.save)
    return found


def directory_name(file: Path, module: str, known: Sources | None = None) -> str:
    """Return the name of the cache directory for a module's compiled kernels."""
    bounds_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
    # Machine code calls Python's C API, which is stable within a minor version.
    setting = (sys.version_info[:2], numba.__version__, llvmlite.__version__, bounds_checked)
    digest = hashlib.sha256(repr(setting).encode())
    digest.update((known or sources()).digest(file).encode())
    return f"{module}-{digest.hexdigest()[:24]}"


def copy_to(target: Path) -> int:
    """Copy the compiled kernels of this installation to another cache directory.

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
            os.replace(partial, target / name)
            count += 1
    return count


class _Locator(_CacheLocator):
    """Locates a compiled kernel's cache directory for numba. Cached kernels never become stale."""

    _seen: ClassVar[Counter[tuple[str, str]]] = Counter()

    def __init__(self, function: Callable[..., object]) -> None:
        file = Path(function.__code__.co_filename).resolve()
        name = directory_name(file, function.__module__)
        self._py_file = str(file)
        self._path = cache_root() / name
        # Kernels of the same name in one module are distinguished by their order.
        key = (name, function.__qualname__)
        self._ordinal = self._seen[key]
        self._seen[key] += 1

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> "_Locator":
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._ordinal)

    def ensure_cache_path(self) -> None:
        self._path.parent.mkdir(mode=MODE, parents=True, exist_ok=True)
        self._path.mkdir(mode=MODE, exist_ok=True)


class _Impl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012  # as numba declares


class KernelCache(FunctionCache):
    """The on-disk cache of one compiled kernel, for all its signatures."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., object]) -> None:
        require_trusted(cache_root())
        super().__init__(function)
        recompile_damaged(self._cache_file)
        save_one_at_a_time(self._cache_file)
        prebuilt = prebuilt_root()
        if prebuilt is not None:
            require_trusted(prebuilt)
            load_prebuilt(self._cache_file, prebuilt / Path(self._cache_path).name)


def recompile_damaged(file: Any) -> None:
    """Make numba recompile kernels that cannot be loaded from the cache.

    Possible reasons: the disk was full, a process was killed, or the kernel was stored with a type
    of a module, such as a test, that this process does not have. None of them may stop a driver.
    """
    load, load_index = file.load, file._load_index

    def load_or_none(key: Any) -> Any:
        try:
            return load(key)
        except _UNREADABLE:
            return None

    def load_index_or_empty() -> Any:
        try:
            return load_index()
        except _UNREADABLE:
            return {}

    file.load, file._load_index = load_or_none, load_index_or_empty


def load_prebuilt(file: Any, directory: Path) -> None:
    """Make numba load a compiled kernel from a second directory if the first does not have it."""
    load = file.load
    prefix = Path(file._index_path).name.removesuffix(".nbi")
    second = IndexDataCacheFile(str(directory), prefix, file._source_stamp)
    recompile_damaged(second)

    def load_either(key: Any) -> Any:
        found = load(key)
        return second.load(key) if found is None else found

    file.load = load_either


def save_one_at_a_time(file: Any) -> None:
    """Serialize the processes that save compiled signatures of the same kernel.

    numba reads the index, adds an entry and writes the index back. Without a lock, two processes
    could lose one of two new entries, and the remaining entry could refer to the wrong file.
    Source: numba, `IndexDataCacheFile`.
    """
    save, directory = file.save, Path(file._cache_path)

    def save_alone(key: Any, data: Any) -> None:
        with (directory / LOCK_FILE).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(key, data)
        sources().save()

    file.save = save_alone
