"""Opens the archive directory for a command, and checks whether an archive is running in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel.driver.archive.storage import catalog_account, mark_file
from windtunnel.driver.archive.storage.catalog import (
    FILE_NAME,
    Catalog,
    CatalogError,
    CatalogVersionError,
)
from windtunnel.driver.archive.storage.catalog_entry import CatalogEntry
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.checksum import Checksum
from windtunnel.driver.archive.storage.mark_file import MarkFileHeader
from windtunnel.driver.archive.storage.segment_file import names, segments_by_recording
from windtunnel.driver.archive.tool.failure import DAMAGED, NOT_FOUND, Failure
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.base.errors import StorageError


def require_archive(directory: Path) -> None:
    """Raise Failure unless the directory contains a catalog."""
    if not directory.is_dir():
        raise Failure(f"{directory}: no such directory", NOT_FOUND)
    if FILE_NAME not in names(directory):
        lost = catalog_account.missing(directory, segments_by_recording(directory))
        if lost:
            raise Failure(f"{lost}; {catalog_account.advice(directory)}", DAMAGED)
        raise Failure(f"{directory}: expected an archive, found no {FILE_NAME}", NOT_FOUND)


def mark_file_of(directory: Path) -> Path:
    """Return the path of the mark file, whether the file exists or not. Raises StorageError if the
    link file cannot be read or is invalid.
    """
    return mark_file.directory_of(directory) / mark_file.FILE_NAME


def header_of(directory: Path) -> MarkFileHeader | None:
    """Return the header of the mark file, or None if there is no mark file. Raises StorageError if
    the file cannot be read or is invalid.
    """
    path = mark_file_of(directory)
    return mark_file.read_header(path) if path.exists() else None


def now_ms() -> int:
    return SystemClock().now_ms()


def require_inactive(directory: Path) -> None:
    """Raise StorageError if an archive is running in the directory."""
    header = header_of(directory)
    if header is not None and header.is_active(now_ms()):
        raise StorageError(
            f"{directory}: the archive is running as process {header.pid}; stop it before "
            "writing to its directory"
        )


@contextmanager
def open_for_reading(directory: Path) -> Iterator[Catalog]:
    """Open the catalog for reading. Raises Failure if there is no catalog, or StorageError if the
    archive cannot be read.
    """
    require_archive(directory)
    segments = segments_by_recording(directory)
    with _with_recovery_advice(directory), Catalog(directory) as catalog:
        fault = catalog.damage or catalog_account.unaccounted(catalog, segments)
        if fault:
            catalog.damage = f"{fault}; {catalog_account.advice(directory)}"
        yield catalog


@contextmanager
def open_for_writing(directory: Path, checksum: Checksum | None = None) -> Iterator[CatalogWriter]:
    """Open the catalog for exclusive writing. Raises Failure if there is no catalog, or
    StorageError if an archive is running or its files cannot be used.
    """
    require_archive(directory)
    require_inactive(directory)
    segments = segments_by_recording(directory)
    options = CatalogOptions(capacity=0, checksum=checksum)
    with _with_recovery_advice(directory), CatalogWriter(directory, options) as catalog:
        fault = catalog_account.unaccounted(catalog, segments)
        if fault:
            raise CatalogError(fault)
        yield catalog


@contextmanager
def _with_recovery_advice(directory: Path) -> Iterator[None]:
    """Add advice to an error about a damaged catalog: the command that rebuilds it."""
    try:
        yield
    except CatalogVersionError:
        raise
    except CatalogError as error:
        raise CatalogError(f"{error}; {catalog_account.advice(directory)}") from error


def select_entries(catalog: Catalog, recording_id: int | None) -> list[CatalogEntry]:
    """Return all entries, or the entry of one recording. Raises Failure if that recording does not
    exist.
    """
    if recording_id is None:
        return list(catalog.entries())
    entry = catalog.entry(recording_id)
    if entry is None:
        raise Failure(f"{catalog.path}: no recording {recording_id}", NOT_FOUND)
    return [entry]
