"""Whether the file system has room for a new log, and when to say that it soon will not.

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
    """Refuse a log that would not fit; note in the error log when space runs low.

    Nothing is asked of the file system where AERON_PERFORM_STORAGE_CHECKS is false.
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
        # The usable bytes are left out of what makes errors alike: the log keeps each text once.
        record_error(
            int(ErrorCode.STORAGE_SPACE),
            f"WARNING: space is running low: threshold={threshold} in {context.dir}",
        )
