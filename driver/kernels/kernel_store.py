"""Stores the images of compiled kernels in the cache, one file per specialization.

    <root>/<module>-<digest>/<function>-<n>-<digest of the argument types>.image

A file is written under a temporary name and then renamed, so a reader never finds a partial file,
and concurrent writers cannot interfere with each other. A damaged file counts as missing.
"""

import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from windtunnel.driver.kernels.cache import (
    MODE,
    directory_name,
    prebuilt_root,
    require_trusted,
    sources,
)
from windtunnel.driver.kernels.kernel_image import ImageError, KernelImage, unpack
from windtunnel.driver.kernels.sources import SOURCE_ROOT, cache_root

SUFFIX = ".image"
_seen: Counter[tuple[str, str]] = Counter()
_directory_of = cache(directory_name)


class KernelStore:
    """The stored specializations of one kernel. Each was compiled for different argument types."""

    def __init__(self, function: Callable[..., object]) -> None:
        file = _resolved(function.__code__.co_filename)
        self._directory = _directory_of(file, function.__module__)
        # Kernels of the same name in one module are distinguished by their order.
        key = (self._directory, function.__qualname__)
        self._prefix = f"{function.__qualname__.replace('<locals>', 'locals')}-{_seen[key]}"
        _seen[key] += 1
        root = cache_root()
        require_trusted(root)
        self._roots = [root]
        prebuilt = prebuilt_root()
        if prebuilt is not None:
            require_trusted(prebuilt)
            self._roots.append(prebuilt)

    def load(self, key: str) -> KernelImage | None:
        """Return the stored kernel image for a key of argument types, or None if it is missing."""
        for root in self._roots:
            found = _read(f"{root}/{self._directory}/{self._name(key)}")
            if found is not None and found[0] == key:
                return found[1]
        return None

    def load_all(self) -> Iterator[tuple[str, KernelImage]]:
        """Yield the key and the kernel image of each stored specialization."""
        names = {
            path.name
            for root in self._roots
            for path in (root / self._directory).glob(f"{self._prefix}-*{SUFFIX}")
        }
        for name in sorted(names):
            for root in self._roots:
                found = _read(f"{root}/{self._directory}/{name}")
                if found is not None:
                    yield found
                    break

    def save(self, key: str, image: KernelImage) -> None:
        """Store a kernel image. Raises OSError if the file cannot be written."""
        directory = cache_root() / self._directory
        cache_root().mkdir(mode=MODE, parents=True, exist_ok=True)
        directory.mkdir(mode=MODE, exist_ok=True)
        path = directory / self._name(key)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            partial.write_bytes(image.pack(key))
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            # An error of writing has no path.
            raise OSError(error.errno, error.strerror, str(path)) from error
        sources().save()

    def _name(self, key: str) -> str:
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return f"{self._prefix}-{digest}{SUFFIX}"


def store_of(function: Callable[..., object]) -> KernelStore | None:
    """Return the store of a kernel, or None for a kernel that cannot be cached.

    A function outside this package has no digest, and the values that a nested function captures
    are not part of its digest.
    """
    if function.__closure__:
        return None
    return KernelStore(function) if _is_ours(function.__code__.co_filename) else None


@cache
def _is_ours(name: str) -> bool:
    return _resolved(name).is_relative_to(SOURCE_ROOT)


@cache
def _resolved(name: str) -> Path:
    return Path(name).resolve()


def _read(path: str) -> tuple[str, KernelImage] | None:
    try:
        with open(path, "rb", buffering=0) as stored:
            return unpack(stored.read())
    except (FileNotFoundError, NotADirectoryError, ImageError):
        return None
