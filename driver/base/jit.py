"""The only definition of `kernel`: how a function becomes machine code, and where that is kept.

numba keys a cached build on the content of the function's own file. A kernel, though, is compiled
together with the kernels it calls, which live in other files, so a change there would silently
serve the old machine code. Therefore each module's builds go into a folder named by a fingerprint
of the module and of everything it imports from this package: a change is never served stale, and
what did not change is never compiled again.

    <root>/<fingerprint of module + its imports + numba + python + flags>-<module>/...

The bounds-checked build (`NUMBA_BOUNDSCHECK=1`) has a fingerprint of its own, since numba would
serve one for the other. Root: `WINDTUNNEL_KERNEL_CACHE`, else
`$XDG_CACHE_HOME/windtunnel/kernels`, else `~/.cache/windtunnel/kernels`.
"""

import fcntl
import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds `driver/`; imports are followed below it only."""

LOCK_FILE = "lock"
"""In each folder of kernels; held by who saves."""

_SETTINGS: Any = numba.config

JIT_DISABLED = bool(_SETTINGS.DISABLE_JIT)
"""True under `NUMBA_DISABLE_JIT=1`, where kernels run as plain Python over twins."""

BOUNDS_CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""True under `NUMBA_BOUNDSCHECK=1`; `atomics` then asserts each access, as numba does not."""

_IMPORT = re.compile(
    r"^\s*(?:from\s+(driver[\w.]*)\s+import\s+(\([^)]*\)|[^\n]+)|import\s+(driver[\w.]*))", re.M
)
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
"""What unpickling bytes that are not what was pickled comes to. Source: Python's pickle."""
# Without numba's runtime nothing is counted, and nothing can be allocated: a kernel gets its arrays
# from a shell that outlives the call. Counting would take a locked instruction for each array of an
# agent's state at each call.
_OPTIONS: Any = {"cache": True, "nogil": True, "_nrt": False}
_FUNCTION = TypeVar("_FUNCTION", bound=Callable[..., object])


def cache_root() -> Path:
    """The folder below which all compiled kernels are kept."""
    chosen = os.environ.get("WINDTUNNEL_KERNEL_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "windtunnel" / "kernels"


def _module_file(name: str) -> Path | None:
    base = PACKAGE_ROOT.joinpath(*name.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@cache
def _source(file: Path) -> bytes:
    return file.read_bytes()


@cache
def imports_of(file: Path) -> frozenset[Path]:
    """The files of this package that `file` imports directly."""
    found: set[Path] = set()
    for package, names, whole in _IMPORT.findall(_source(file).decode()):
        module = package or whole
        wanted = [module]
        if names:
            parts = re.sub(r"#[^\n]*|[()]", "", names).split(",")
            wanted += [
                f"{module}.{part.split(' as ')[0].strip()}" for part in parts if part.strip()
            ]
        found.update(path for name in wanted if (path := _module_file(name)) is not None)
    return frozenset(found - {file})


def closure_of(file: Path) -> list[Path]:
    """`file` and all that it imports from this package, directly or not, in a fixed order."""
    seen = {file}
    pending = [file]
    while pending:
        for path in imports_of(pending.pop()):
            if path not in seen:
                seen.add(path)
                pending.append(path)
    return sorted(seen)


@cache
def fingerprint(file: Path) -> str:
    """A digest of everything that decides the machine code of the kernels in `file`."""
    digest = hashlib.sha256()
    setting = (sys.version_info[:3], numba.__version__, llvmlite.__version__, BOUNDS_CHECKED)
    digest.update(repr(setting).encode())
    for path in closure_of(file):
        digest.update(str(path.relative_to(PACKAGE_ROOT)).encode())
        digest.update(_source(path))
    return digest.hexdigest()[:24]


def kernel(function: _FUNCTION) -> _FUNCTION:
    """Compile a function of numbers and arrays: without the GIL, cached on disk, types inferred.

    A kernel takes and returns numbers, arrays and named tuples of arrays; it has no objects, no
    clock, no randomness and allocates nothing on a hot path.
    """
    if JIT_DISABLED:
        return function
    file = Path(function.__code__.co_filename).resolve()
    if file.is_relative_to(PACKAGE_ROOT):
        # A build names its module, which is not the same for a file that is run and one that is
        # imported.
        folder = f"{fingerprint(file)}-{function.__module__}"
        _SETTINGS.CACHE_DIR = str(cache_root() / folder)
    compile_lazily: Any = numba.njit(**_OPTIONS)
    compiled: Any = compile_lazily(function)
    _pass_over_damage(compiled._cache._cache_file)
    _save_one_by_one(compiled._cache._cache_file)
    result: _FUNCTION = compiled
    return result


def compile_for(function: Callable[..., object], arguments: Sequence[object]) -> None:
    """Have a kernel in memory for the types of these arguments, from the disk or the compiler."""
    if not JIT_DISABLED:
        compiled: Any = function
        compiled.compile(tuple(numba.typeof(each) for each in arguments))


def _pass_over_damage(kept: Any) -> None:
    """Compile anew what cannot be read back.

    A disk may have been full, a process killed, or a build kept under a type of a module, such as a
    test's, that this process does not have. None of that may stop a driver.
    """
    load, load_index = kept.load, kept._load_index

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

    kept.load, kept._load_index = load_or_none, load_index_or_empty


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
