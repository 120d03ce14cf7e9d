"""Creates the driver's directory at start and deletes it at shutdown.

    no directory          created
    any foreign file      refused, nothing is deleted
    an active driver      refused, unless AERON_DIR_DELETE_ON_START is true
    a dead driver         its error log is saved, its files are deleted, and they are created again

A file is a driver's file if this user owns it and a driver creates files with its name and type.
Old files are never reused. Foreign files are never deleted, because a mistyped AERON_DIR would
otherwise destroy data. Source: spec 10.4 and 10.5; Aeron 1.53 deletes all files.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from windtunnel.driver.base import system
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import ActiveDriverError, DriverError, StorageError
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.media_driver import directory_files
from windtunnel.driver.media_driver.context import Context


def print_warning(text: str) -> None:
    """Print a warning to standard error."""
    print(text, file=sys.stderr, flush=True)


def claim_directory(
    context: Context, clock: Clock, warn: Callable[[str], None] = print_warning
) -> None:
    """Create the driver's directory, replacing the directory of a dead driver.

    Raises ActiveDriverError if a driver uses the directory, or StorageError if it has foreign
    files.
    """
    directory = directory_files.real_path(context.dir)
    if directory.is_dir():
        if context.dir_warn_if_exists:
            warn(f"WARNING: {context.dir} exists")
        with directory_files.opened(directory) as root:
            _refuse_foreign(context, root, directory)
            if not context.dir_delete_on_start:
                _refuse_living(context, clock)
                save_errors(context.dir, clock, warn)
            _delete(root, directory)
    _make(directory)


def release_directory(context: Context, warn: Callable[[str], None] = print_warning) -> None:
    """Delete the driver's files if AERON_DIR_DELETE_ON_SHUTDOWN is set.

    The directory is deleted too, unless it has foreign files. A warning reports the first foreign
    file.
    """
    if not context.dir_delete_on_shutdown:
        return
    try:
        directory = directory_files.real_path(context.dir)
        if not directory.is_dir():
            return
        with directory_files.opened(directory) as root:
            directory_files.delete_files(root)
            fault = directory_files.first_fault(root)
        if fault is None:
            directory.rmdir()
        else:
            warn(f"WARNING: {context.dir} (AERON_DIR) is not deleted: {fault}")
    except (DriverError, OSError) as error:
        warn(f"WARNING: cannot delete {context.dir} (AERON_DIR): {error}")


def save_errors(
    directory: Path, clock: Clock, warn: Callable[[str], None] = print_warning
) -> Path | None:
    """Save a dead driver's error log to a file next to the driver's directory.

    Returns the file's path, or None if there are no errors or the log cannot be read.
    """
    try:
        cnc = cnc_file.open_existing(directory)
    except DriverError:
        # A driver that died before it was ready has recorded no errors.
        return None
    try:
        errors = read_errors(cnc.error_log)
    finally:
        cnc.close()
    if not errors:
        return None
    stamp = format_time(clock.now_ms()).replace(":", "-")
    path = directory.with_name(f"{directory.name}-{stamp}-error.log")
    text = "".join(
        f"***\n{error.observation_count} observations from "
        f"{format_time(error.first_observation_ms)} to "
        f"{format_time(error.last_observation_ms)} for:\n {error.text}\n"
        for error in errors
    )
    try:
        # Exclusive creation does not follow a link with this name that another user created.
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n{len(errors)} distinct errors observed.\n")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    warn(f"WARNING: Existing errors saved to: {path}")
    return path


def format_time(epoch_ms: int) -> str:
    """Format local time like Aeron's C tools, for example 2026-01-31 23:59:59.999+0100."""
    try:
        moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        # The timestamp comes from another process and may be out of range.
        return f"{epoch_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{epoch_ms % 1000:03d}{moment:%z}"


def _refuse_living(context: Context, clock: Clock) -> None:
    directory = context.dir
    if cnc_file.is_driver_active(directory, clock, system.sleep_ns, context.driver_timeout_ms):
        raise ActiveDriverError(
            f"active media driver detected: {directory / cnc_file.FILE_NAME} (AERON_DIR)"
        )


def _refuse_foreign(context: Context, root: int, directory: Path) -> None:
    fault = directory_files.first_fault(root) or directory_files.cnc_fault(root, directory)
    if fault is not None:
        raise StorageError(
            f"{context.dir} (AERON_DIR): expected an empty directory or only the files of a media "
            f"driver, found: {fault}. Nothing was deleted. Delete the directory yourself or set "
            "AERON_DIR to another directory"
        )


def _delete(root: int, directory: Path) -> None:
    try:
        directory_files.delete_files(root)
    except OSError as error:
        raise StorageError(
            f"cannot delete {error.filename} in {directory} (AERON_DIR): {error.strerror}"
        ) from error
    # A mount point, or a directory whose parent is not writable, is kept and used.
    with suppress(OSError):
        directory.rmdir()


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with directory_files.opened(directory) as root:
            for folder in directory_files.FOLDERS:
                os.mkdir(folder, dir_fd=root)
    except OSError as error:
        raise StorageError(
            f"cannot create {directory / error.filename} (AERON_DIR): {error.strerror}"
        ) from error
