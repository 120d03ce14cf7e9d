"""The message about a cache of compiled kernels that this user cannot write to.

It is not in the modules that access the cache: whatever they import is part of each kernel's
digest.
"""

from pathlib import Path

from windtunnel.driver.kernels.sources import CACHE_VARIABLE, cache_root


def advice(error: OSError) -> str:
    """Return what to do about an error, if it is of the kernel cache, or else an empty string.

    A path that leads to the cache counts, such as a home directory that does not exist.
    """
    if not isinstance(error.filename, str):
        return ""
    root, path = cache_root().absolute(), Path(error.filename).absolute()
    if path != root and path not in root.parents and root not in path.parents:
        return ""
    return (
        f": expected a writable directory for compiled kernels, {root}; set another one in "
        f"{CACHE_VARIABLE}"
    )
