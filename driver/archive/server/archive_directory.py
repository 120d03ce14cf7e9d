"""An archive's directory before it may be used: made, emptied if that is wished, mended.

A recording without a stop position was going on when its archive was killed; its files tell where
it stopped, and the last of them gets the length that all have. Of one whose last frame may be torn
nobody but a person can say where it stopped, so the archive does not start. Nor does it start where
the catalog is damaged, or missing, or does not account for the segment files: it would use their
names again. Emptying takes away
what archives leave, and nothing else that may lie there, where Aeron deletes the whole directory.
Source: archive-protocol 4.6.
"""

import errno
import os
import re
from pathlib import Path

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.storage import catalog_account, mark_file, segment_file
from windtunnel.driver.archive.storage.catalog import FILE_NAME, CatalogError, CatalogVersionError
from windtunnel.driver.archive.storage.catalog_account import Segments
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.mark_file import ActiveArchiveError
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import segments_by_recording
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError

_OURS = re.compile(
    r"archive\.catalog(\.compact|\.updated|\.damaged-\d+)?"
    r"|archive-mark\.(dat|lnk|new)|archive-\d+-error\.log"
)


def make(directory: Path) -> None:
    """Make a directory, with those above it, that can be written to. Raises StorageError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        why = "Permission denied"
        if os.statvfs(directory).f_flag & os.ST_RDONLY:
            why = os.strerror(errno.EROFS)
        raise StorageError(
            f"{directory}: expected a directory that can be written to: {why}; give this user "
            "the right to write to it, or choose another with aeron.archive.dir or "
            "aeron.archive.mark.file.dir"
        )


def empty(directory: Path, clock: Clock) -> None:
    """Take away what archives leave. Raises ActiveArchiveError, StorageError."""
    if not directory.is_dir():
        return
    path = mark_file.directory_of(directory) / mark_file.FILE_NAME
    if path.exists() and mark_file.read_header(path).is_active(clock.now_ms()):
        raise ActiveArchiveError(f"{directory}: an archive lives in it, so it is not emptied")
    for name in segment_file.names(directory):
        found = directory / name
        if _OURS.fullmatch(name) or segment_file.parsed(found) is not None:
            try:
                found.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"cannot delete {found}: {error.strerror}") from error


def open_catalog(directory: Path, options: CatalogOptions, clock: Clock) -> CatalogWriter:
    """The catalog, made if there is none, in which nothing goes on. Raises StorageError."""
    segments = segments_by_recording(directory)
    if not os.path.lexists(directory / FILE_NAME):
        fault = catalog_account.missing(directory, segments)
        if fault:
            raise CatalogError(f"{fault}; {catalog_account.advice(directory)}")
        return CatalogWriter.create(directory, options)
    catalog = _opened(directory, options, segments)
    try:
        fault = catalog_account.unaccounted(catalog, segments)
        if fault:
            raise CatalogError(f"{fault}; {catalog_account.advice(directory)}")
        _mend(directory, catalog, options.checksum, clock, segments)
    except BaseException:
        catalog.close()
        raise
    return catalog


def _opened(directory: Path, options: CatalogOptions, segments: Segments) -> CatalogWriter:
    try:
        return CatalogWriter(directory, options)
    except CatalogVersionError:
        raise
    except CatalogError as error:
        present = catalog_account.count_text(segments)
        advice = catalog_account.advice(directory)
        raise CatalogError(f"{error}; beside it are {present}; {advice}") from error


def _mend(
    directory: Path,
    catalog: CatalogWriter,
    checksum: Checksum | None,
    clock: Clock,
    segments: Segments,
) -> None:
    for recording_id in catalog.recording_ids:
        recording = catalog.descriptor(recording_id)
        if recording is None or recording.stop_position != NULL_VALUE:
            continue
        own = segments.get(recording_id, [])
        stop = recovered_stop(directory, recording, checksum, own)
        if stop.doubtful_position is not None:
            raise StorageError(
                f"{directory}: the last frame of recording {recording_id}, at position "
                f"{stop.doubtful_position}, may be torn; `windtunnel archive verify "
                f"{recording_id}` can cut it off"
            )
        if own:
            # It may have been killed between making its last file and giving it its length.
            segment_file.lengthen(own[-1].path, recording.segment_file_length)
        catalog.stopped(recording_id, stop.position, clock.now_ms())
