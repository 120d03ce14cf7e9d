"""The directory that a tool was told, and whether an archive lives in it."""

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
from windtunnel.driver.archive.tool.failure import DAMAGED, NOTHING, Failure
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.base.errors import StorageError


def require_archive(directory: Path) -> None:
    """Raise Failure unless there is a catalog."""
    if not directory.is_dir():
        raise Failure(f"{directory}: there is no such directory", NOTHING)
    if FILE_NAME not in names(directory):
        lost = catalog_account.missing(directory, segments_by_recording(directory))
        if lost:
            raise Failure(f"{lost}; {catalog_account.advice(directory)}", DAMAGED)
        raise Failure(f"{directory}: there is no archive: no {FILE_NAME}", NOTHING)


def mark_file_of(directory: Path) -> Path:
    """Where the mark file is, or would be. Raises StorageError."""
    return mark_file.directory_of(directory) / mark_file.FILE_NAME


def header_of(directory: Path) -> MarkFileHeader | None:
    """What the archive tells about itself, if it left a mark file. Raises StorageError."""
    path = mark_file_of(directory)
    return mark_file.read_header(path) if path.exists() else None


def now_ms() -> int:
    return SystemClock().now_ms()


def require_dead(directory: Path) -> None:
    """Raise StorageError while an archive is active in the directory."""
    header = header_of(directory)
    if header is not None and header.is_active(now_ms()):
        raise StorageError(
            f"{directory}: its archive lives, as process {header.pid}, and only it may write"
        )


@contextmanager
def reading(directory: Path) -> Iterator[Catalog]:
    """The catalog, to look at. Raises Failure, StorageError."""
    require_archive(directory)
    segments = segments_by_recording(directory)
    with _advised(directory), Catalog(directory) as catalog:
        fault = catalog.damage or catalog_account.unaccounted(catalog, segments)
        if fault:
            catalog.damage = f"{fault}; {catalog_account.advice(directory)}"
        yield catalog


@contextmanager
def writing(directory: Path, checksum: Checksum | None = None) -> Iterator[CatalogWriter]:
    """The catalog, to change; nobody else may. Raises Failure, StorageError."""
    require_archive(directory)
    require_dead(directory)
    segments = segments_by_recording(directory)
    options = CatalogOptions(capacity=0, checksum=checksum)
    with _advised(directory), CatalogWriter(directory, options) as catalog:
        fault = catalog_account.unaccounted(catalog, segments)
        if fault:
            raise CatalogError(fault)
        yield catalog


@contextmanager
def _advised(directory: Path) -> Iterator[None]:
    """Say of a damaged catalog which command rebuilds it."""
    try:
        yield
    except CatalogVersionError:
        raise
    except CatalogError as error:
        raise CatalogError(f"{error}; {catalog_account.advice(directory)}") from error


def chosen(catalog: Catalog, recording_id: int | None) -> list[CatalogEntry]:
    """All entries, or the one that was asked for. Raises Failure."""
    if recording_id is None:
        return list(catalog.entries())
    entry = catalog.entry(recording_id)
    if entry is None:
        raise Failure(f"{catalog.path}: there is no recording {recording_id}", NOTHING)
    return [entry]
