"""The harness's own `kernel`: how a function becomes machine code, and where that is kept.

numba keys a cached build on the text of the function's own file, so a changed callee in another
file would be served stale. Each module's builds therefore lie in a folder named by a digest of the
module and of all that it imports from these packages:

    <root>/<module>-<digest of sources, numba, Python, bounds flag>/

so a change is never served stale and what did not change is never compiled again. This module
repeats what the driver has for itself: the judge shares no code with the judged.
"""

import ast
import fcntl
import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

PACKAGES = ("harness", "driver", "reports")
"""Packages whose modules may hold kernels: rooms that run inside a host call the driver's."""
SOURCE_ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds the packages; imports are followed below it only."""

LOCK_FILE = "lock"
"""In each folder of kernels; held by who saves."""

_SETTINGS: Any = numba.config
_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., object])


def cache_root() -> Path:
    """The folder below which all compiled kernels are kept."""
    chosen = os.environ.get("WINDTUNNEL_KERNEL_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "windtunnel" / "kernels"


def _file_of(module: str, source_root: Path) -> Path | None:
    base = source_root.joinpath(*module.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def imported_files(file: Path, source_root: Path = SOURCE_ROOT) -> frozenset[Path]:
    """The files of these packages that a file imports itself."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    ours = (name for name in names if name.split(".")[0] in PACKAGES)
    files = (_file_of(name, source_root) for name in ours)
    return frozenset(found for found in files if found is not None and found != file)


def reachable_files(file: Path, source_root: Path = SOURCE_ROOT) -> list[Path]:
    """A file and all that it imports from these packages, directly or not, sorted."""
    seen = {file}
    pending = [file]
    while pending:
        for found in imported_files(pending.pop(), source_root) - seen:
            seen.add(found)
            pending.append(found)
    return sorted(seen)


@cache
def cache_folder(file: Path, source_root: Path = SOURCE_ROOT) -> str:
    """The name of the folder for the compiled kernels of a module."""
    digest = hashlib.sha256()
    bounds_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0")
    digest.update(repr((sys.version_info[:3], numba.__version__, bounds_checked)).encode())
    for source in reachable_files(file, source_root):
        digest.update(str(source.relative_to(source_root)).encode() + b"\0")
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return f"{file.stem}-{digest.hexdigest()[:24]}"


def kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function of numbers and arrays: without the GIL, cached on disk, types inferred.

    With `NUMBA_DISABLE_JIT=1` the function runs as the plain Python that it is.
    """
    return _compiled(function, {"cache": True, "nogil": True})


def bare_kernel(function: _FUNCTION) -> _FUNCTION:
    """The same without numba's runtime: no array is counted, and nothing can be allocated.

    For kernels that pass the whole state of agents from call to call: counting would take a locked
    instruction for each array of it. The arrays must outlive the call.
    """
    return _compiled(function, {"cache": True, "nogil": True, "_nrt": False})


def _compiled(function: _FUNCTION, options: Any) -> _FUNCTION:
    if _SETTINGS.DISABLE_JIT:
        return function
    file = Path(function.__code__.co_filename).resolve()
    if file.is_relative_to(SOURCE_ROOT):
        _SETTINGS.CACHE_DIR = str(cache_root() / cache_folder(file))
    compile_lazily: Any = numba.njit(**options)
    compiled: Any = compile_lazily(function)
    _save_one_by_one(compiled._cache._cache_file)
    result: _FUNCTION = compiled
    return result


def _save_one_by_one(kept: Any) -> None:
    """Let processes that compile builds of one kernel at once take turns to save them.

    numba reads the index, adds to it and writes it back: of two at once one would be forgotten, and
    the other's entry might lead to the file of the first. Source: numba, `IndexDataCacheFile`.
    """
    save, folder = kept.save, Path(kept._cache_path)

    def save_alone(key: Any, data: Any) -> None:
        with (folder / LOCK_FILE).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(key, data)

    kept.save = save_alone
