"""The directory of a driver: taken at the start, left or removed at the end.

    no directory       made
    delete on start    removed and made, whoever lives there
    a living driver    refused
    a dead driver      its errors are saved beside it, then removed and made

Nothing old is ever reused. What does not look like a driver's directory is not removed: a mistyped
AERON_DIR shall cost nobody their files. Source: spec 10.4 and 10.5, Aeron 1.53.
"""

import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from driver.base import system
from driver.base.clock import Clock
from driver.base.errors import ActiveDriverError, DriverError, StorageError
from driver.cnc import cnc_file
from driver.cnc.error_log import read_errors
from driver.media_driver.context import Context

PUBLICATIONS = "publications"
IMAGES = "images"
LOSS_REPORT = "loss-report.dat"
_MARKS = frozenset({cnc_file.FILE_NAME, PUBLICATIONS, IMAGES, LOSS_REPORT})


def tell(text: str) -> None:
    """A warning to whoever started the process."""
    print(text, file=sys.stderr, flush=True)


def take_directory(context: Context, clock: Clock, warn: Callable[[str], None] = tell) -> None:
    """Make the driver's directory anew, unless a driver lives in it."""
    directory = context.dir
    if directory.is_dir():
        if context.dir_warn_if_exists:
            warn(f"WARNING: {directory} exists")
        if not context.dir_delete_on_start:
            _refuse_living(context, clock)
            save_errors(directory, clock, warn)
        _remove(directory)
    # Where the setting names a link, the link stays and what it names is made anew.
    made = directory.resolve()
    try:
        for folder in (made, made / PUBLICATIONS, made / IMAGES):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {error.filename} (AERON_DIR): {error.strerror}") from error


def leave_directory(context: Context) -> None:
    """Remove the directory at an orderly end, where the settings ask for it."""
    if context.dir_delete_on_shutdown:
        shutil.rmtree(context.dir.resolve(), ignore_errors=True)


def save_errors(directory: Path, clock: Clock, warn: Callable[[str], None] = tell) -> Path | None:
    """Write the errors that a dead driver noted to a file beside its directory.

    Returns the file, or None where there were none, or nothing that can be read.
    """
    try:
        cnc = cnc_file.open_existing(directory)
    except DriverError:
        # A driver that died before it was ready has noted nothing.
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
        path.write_text(f"{text}\n{len(errors)} distinct errors observed.\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    warn(f"WARNING: Existing errors saved to: {path}")
    return path


def format_time(epoch_ms: int) -> str:
    """Local time as Aeron's C tools write it: 2026-01-31 23:59:59.999+0100."""
    try:
        moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        # The number is another process's word.
        return f"{epoch_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{epoch_ms % 1000:03d}{moment:%z}"


def _refuse_living(context: Context, clock: Clock) -> None:
    directory = context.dir
    if cnc_file.is_driver_active(directory, clock, system.sleep_ns, context.driver_timeout_ms):
        raise ActiveDriverError(
            f"active media driver detected: {directory / cnc_file.FILE_NAME} (AERON_DIR)"
        )
    names = {path.name for path in directory.iterdir()}
    if names and not names & _MARKS:
        raise StorageError(
            f"{directory} (AERON_DIR) holds files, but none of a driver's; it is left alone unless "
            "AERON_DIR_DELETE_ON_START is true"
        )


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory.resolve())
    except OSError as error:
        raise StorageError(
            f"cannot delete {error.filename or directory} (AERON_DIR): {error.strerror}"
        ) from error
