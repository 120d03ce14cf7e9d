"""Prepares the archive directory before the archive starts: creates, empties or recovers it.

A recording without a stop position was active when its archive was killed. Its stop position is
recovered from its files, and the last file is extended to the segment length. If the last frame of
a recording may be torn, the archive does not start, because the user must decide where the
recording stopped. The archive also does not start if the catalog is damaged or missing, or has no
entry for a segment file, because it would reuse the names of existing files. Emptying deletes only
files that archives create. Aeron deletes the whole directory. Source: archive-protocol 4.6.
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
from windtunnel.driver.archive.storage.mark_file_writer import ActiveArchiveError
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import segments_by_recording
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError

_ARCHIVE_FILE = re.compile(
    r"archive\.catalog(\.compact|\.updated|\.damaged-\d+)?"
    r"|archive-mark\.(dat|lnk|new)|archive-\d+-error\.log"
)


def create(directory: Path) -> None:
    """Create a directory and its parents, and check that it is writable. Raises StorageError if it
    cannot be created or is not writable.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot create {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK | os.X_OK):
        reason = "Permission denied"
        if os.statvfs(directory).f_flag & os.ST_RDONLY:
            reason = os.strerror(errno.EROFS)
        raise StorageError(
            f"{directory}: expected a writable directory: {reason}; grant this user write "
            "permission, or choose another directory with aeron.archive.dir or "
            "aeron.archive.mark.file.dir"
        )


def empty(directory: Path, clock: Clock) -> None:
    """Delete all archive files from a directory. Raises ActiveArchiveError if an archive is running
    in the directory, or StorageError if a file cannot be deleted.
    """
    if not directory.is_dir():
        return
    path = mark_file.directory_of(directory) / mark_file.FILE_NAME
    if path.exists() and mark_file.read_header(path).is_active(clock.now_ms()):
        raise ActiveArchiveError(
            f"{directory}: cannot delete the files, because an archive is running in the directory"
        )
    for name in segment_file.names(directory):
        file = directory / name
        if _ARCHIVE_FILE.fullmatch(name) or segment_file.parse_name(file) is not None:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"cannot delete {file}: {error.strerror}") from error


def open_catalog(directory: Path, options: CatalogOptions, clock: Clock) -> CatalogWriter:
    """Open or create the catalog, and recover missing stop positions. Raises StorageError if the
    directory cannot be read or its files are damaged.
    """
    segments = segments_by_recording(directory)
    if not os.path.lexists(directory / FILE_NAME):
        fault = catalog_account.missing(directory, segments)
        if fault:
            raise CatalogError(f"{fault}; {catalog_account.advice(directory)}")
        return CatalogWriter.create(directory, options)
    catalog = _open(directory, options, segments)
    try:
        fault = catalog_account.unaccounted(catalog, segments)
        if fault:
            raise CatalogError(f"{fault}; {catalog_account.advice(directory)}")
        _recover_stops(directory, catalog, options.checksum, clock, segments)
    except BaseException:
        catalog.close()
        raise
    return catalog


def _open(directory: Path, options: CatalogOptions, segments: Segments) -> CatalogWriter:
    try:
        return CatalogWriter(directory, options)
    except CatalogVersionError:
        raise
    except CatalogError as error:
        present = catalog_account.count_text(segments)
        advice = catalog_account.advice(directory)
        raise CatalogError(f"{error}; the directory has {present}; {advice}") from error


def _recover_stops(
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
                f"{recording_id}` can truncate the recording there"
            )
        if own:
            # The archive may have been killed between creating the last file and extending it.
            segment_file.extend_file(own[-1].path, recording.segment_file_length)
        catalog.record_stop(recording_id, stop.position, clock.now_ms())
