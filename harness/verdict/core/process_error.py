"""Errors of files of a run, and of the process that judges it.

Those of the process say nothing about the run. They end the judge, so that it does not replace the
verdict of a run by one about this machine.
"""

import errno

from windtunnel.driver.kernels.cache import KernelCacheError
from windtunnel.driver.kernels.cache_error import advice
from windtunnel.harness.verdict.core.finding import Missing

_LIMITS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Too many open files, of this process or of the machine, and too little memory."""


def is_of_process(error: BaseException | None) -> bool:
    """Return whether an error is one of the kernel cache, or of a limit of the process."""
    is_of_cache = isinstance(error, OSError) and bool(advice(error))
    return is_of_limit(error) or is_of_cache or isinstance(error, KernelCacheError)


def is_of_limit(error: BaseException | None) -> bool:
    """Return whether memory or open files were not enough."""
    is_few_files = isinstance(error, OSError) and error.errno in _LIMITS
    return is_few_files or isinstance(error, MemoryError)


def unread(name: str, error: OSError) -> Missing:
    """Return why a file could not be read. Raises an error of the process again."""
    if is_of_process(error):
        raise error
    if isinstance(error, FileNotFoundError):
        return Missing(name, "is missing")
    return Missing(name, f"cannot be read: {error.strerror or error}")
