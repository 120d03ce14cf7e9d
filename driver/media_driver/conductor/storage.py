"""Checks the free space on the file system before a log buffer is created.

Source: spec 10.1, Aeron 1.53.
"""

from collections.abc import Callable
from pathlib import Path

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media_driver.context import Context


def check_space(
    context: Context,
    log_length: int,
    record_error: Callable[[int, str], None],
    usable_bytes: Callable[[Path], int],
) -> None:
    """Raise StorageError if a log does not fit, and record an error if there is little free space.

    Does nothing if AERON_PERFORM_STORAGE_CHECKS is false.
    """
    if not context.perform_storage_checks:
        return
    usable, threshold = usable_bytes(context.dir), context.low_file_store_warning_threshold
    if usable < log_length:
        raise StorageError(
            f"insufficient usable storage for new log of length={log_length} "
            f"usable={usable} in {context.dir}"
        )
    if usable <= threshold:
        # The text omits the usable bytes, because the distinct error log has an entry for each
        # text.
        record_error(
            int(ErrorCode.STORAGE_SPACE),
            f"WARNING: space is running low: threshold={threshold} in {context.dir}",
        )
