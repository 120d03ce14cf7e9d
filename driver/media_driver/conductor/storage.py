"""Checks the free space on the file system before a log buffer is created.

Log files are sparse, so the free space does not show what existing logs may still use. The logs of
images, whose lengths come from the network, only use the space that remains if all logs grow to
their full lengths. Aeron makes no such reservation: there, a few SETUP frames can fill the file
system, and the next write to any log ends the driver. Source: spec 10.1, Aeron 1.53.
"""

import os
from collections.abc import Callable
from pathlib import Path

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.context import Context

LOG_FOLDERS = ("publications", "images")
_BLOCK_LENGTH = 512
"""Unit of a file's allocated blocks in stat(2)."""


class InsufficientSpaceError(StorageError):
    """A log does not fit on the file system."""


def check_space(
    context: Context,
    log_length: int,
    record_error: Callable[[int, str], None],
    usable_bytes: Callable[[Path], int],
) -> None:
    """Raise InsufficientSpaceError if a new log does not fit on the file system. Records an error
    if little space is free.

    Does nothing if AERON_PERFORM_STORAGE_CHECKS is false.
    """
    if not context.perform_storage_checks:
        return
    usable, threshold = usable_bytes(context.dir), context.low_file_store_warning_threshold
    if usable < log_length:
        raise InsufficientSpaceError(
            f"insufficient usable storage for new log of length={log_length} "
            f"usable={usable} in {context.dir}"
        )
    if usable <= threshold:
        # The message omits the usable bytes, because the error log has an entry for each distinct
        # message.
        record_error(
            int(ErrorCode.STORAGE_SPACE),
            f"WARNING: space is running low: threshold={threshold} in {context.dir}",
        )


def unreserved_bytes(directory: Path, usable: int, mapped_bytes: int, log_length: int) -> int:
    """Return the number of usable bytes that would remain if all logs in a driver's directory had
    their full size on disk.

    `mapped_bytes` is an upper limit of the logs' growth. If a log of `log_length` bytes fits even
    with this limit, the files are not examined.
    """
    if usable - mapped_bytes >= log_length:
        return usable - mapped_bytes
    return usable - sum(_growth_bytes(directory / folder) for folder in LOG_FOLDERS)


def _growth_bytes(folder: Path) -> int:
    growth = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            growth += max(0, status.st_size - _BLOCK_LENGTH * status.st_blocks)
    return growth
