"""What to do about an error of a file, if the environment or a setting is its cause.

It is not in the modules that access the cache of compiled kernels: whatever they import is part of
each kernel's digest.
"""

import errno
import resource
from pathlib import Path

from windtunnel.driver.kernels.sources import CACHE_VARIABLE, cache_root


def advice(error: BaseException | None) -> str:
    """Return what to do about an error, if it is of the kernel cache or of the limit for the size
    of files, or else an empty string.

    A path that leads to the cache counts, such as a home directory that does not exist.
    """
    if not isinstance(error, OSError):
        return ""
    if error.errno == errno.EFBIG:
        return size_limit_advice()
    if not isinstance(error.filename, str):
        return ""
    root, path = cache_root().absolute(), Path(error.filename).absolute()
    if path != root and path not in root.parents and root not in path.parents:
        return ""
    return (
        f": expected a writable directory for compiled kernels, {root}; set another one in "
        f"{CACHE_VARIABLE}"
    )


def size_limit_advice() -> str:
    """Return what to do about the limit for the size of files, or an empty string if there is
    none.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f": expected a higher limit for the size of files, found {limit:,} bytes; raise it with "
        "`ulimit -f unlimited`"
    )
