"""The cache of compiled kernels: one directory per module and content, outside the source tree.

    <root>/<module>-<digest of sources, numba, Python, flags>/<function>.nbi, .nbc

A changed kernel is never served from the cache, and an unchanged one is never compiled twice, in
this checkout or in another at a different path. numba itself would key the directory by the path of
the source file, and would miss a change in a callee that another file defines.

Compiled kernels are code. A cache directory that other users can write to is refused.

Root: `WINDTUNNEL_KERNEL_CACHE`, else `$XDG_CACHE_HOME/windtunnel/kernels`, else
`~/.cache/windtunnel/kernels`.
"""

import atexit
import fcntl
import hashlib
import os
import pickle
import stat
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from windtunnel.driver.kernels.sources import FILE_NAME, Sources

LOCK_FILE = "lock"
"""In each directory of compiled kernels; held while a process saves to it."""
CACHE_VARIABLE = "WINDTUNNEL_KERNEL_CACHE"
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
"""What unpickling raises for bytes that it did not pickle. Source: Python's pickle."""


class KernelCacheError(OSError):
    """The cache directory cannot be trusted."""


def cache_root() -> Path:
    """The directory below which all compiled kernels are stored."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "windtunnel" / "kernels"


@cache
def require_trusted(directory: Path) -> None:
    """Raise KernelCacheError if other users could have put code into a directory.

    The directory must belong to this user or to root, and nobody else may write to it. A directory
    that does not exist is trusted: it will be created with mode 0700.
    """
    try:
        found = directory.stat()
    except FileNotFoundError:
        return
    if found.st_uid in (os.geteuid(), 0) and not found.st_mode & _OTHERS_MAY_WRITE:
        return
    raise KernelCacheError(
        f"kernel cache {directory}: expected a directory of user {os.geteuid()} that nobody else "
        f"can write to, found owner {found.st_uid} and mode {stat.S_IMODE(found.st_mode):04o}; "
        f"delete it, or name another one with {CACHE_VARIABLE}"
    )


@cache
def sources() -> Sources:
    """The digests of this installation's modules; what was parsed is stored when a process ends."""
    found = Sources(store=cache_root() / FILE_NAME)
    atexit.register(found.save)
    return found


def directory_name(file: Path, module: str, known: Sources | None = None) -> str:
    """The name of the directory that stores the compiled kernels of a module."""
    bounds_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
    setting = (sys.version_info[:3], numba.__version__, llvmlite.__version__, bounds_checked)
    digest = hashlib.sha256(repr(setting).encode())
    digest.update((known or sources()).digest(file).encode())
    return f"{module}-{digest.hexdigest()[:24]}"


class _Locator(_CacheLocator):
    """Tells numba the directory, and that content with this name never goes stale."""

    _seen: ClassVar[Counter[tuple[str, str]]] = Counter()

    def __init__(self, function: Callable[..., object]) -> None:
        file = Path(function.__code__.co_filename).resolve()
        name = directory_name(file, function.__module__)
        self._py_file = str(file)
        self._path = cache_root() / name
        # Twins of one name in one module are told apart by their order.
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
    """The cache of one kernel, all its signatures."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., object]) -> None:
        require_trusted(cache_root())
        super().__init__(function)
        recompile_damaged(self._cache_file)
        save_one_at_a_time(self._cache_file)


def recompile_damaged(file: Any) -> None:
    """Make numba compile again what cannot be read back.

    A disk may have been full, a process killed, or a kernel stored under a type of a module, such
    as a test's, that this process does not have. None of that may stop a driver.
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


def save_one_at_a_time(file: Any) -> None:
    """Serialize processes that save signatures of one kernel at the same time.

    numba reads the index, adds to it and writes it back: without a lock one of two new entries
    would be lost, and the other might lead to the wrong file. Source: numba, `IndexDataCacheFile`.
    """
    save, directory = file.save, Path(file._cache_path)

    def save_alone(key: Any, data: Any) -> None:
        with (directory / LOCK_FILE).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(key, data)
        sources().save()

    file.save = save_alone
