"""The directory that a tool was told, and whether an archive lives in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driver.archive.storage import mark_file
from driver.archive.storage.catalog import FILE_NAME, Catalog
from driver.archive.storage.catalog_entry import CatalogEntry
from driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from driver.archive.storage.checksum import Checksum
from driver.archive.storage.mark_file import MarkFileHeader
from driver.archive.tool.failure import NOTHING, Failure
from driver.base.clock import SystemClock
from driver.base.errors import StorageError


def require_archive(directory: Path) -> None:
    """Raise Failure unless there is a catalog."""
    if not directory.is_dir():
        raise Failure(f"{directory}: there is no such directory", NOTHING)
    if not (directory / FILE_NAME).exists():
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


@contextmanager
def reading(directory: Path) -> Iterator[Catalog]:
    """The catalog, to look at. Raises Failure, StorageError."""
    require_archive(directory)
    with Catalog(directory) as catalog:
        yield catalog


@contextmanager
def writing(directory: Path, checksum: Checksum | None = None) -> Iterator[CatalogWriter]:
    """The catalog, to change; nobody else may. Raises Failure, StorageError."""
    require_archive(directory)
    header = header_of(directory)
    if header is not None and header.is_active(now_ms()):
        raise StorageError(
            f"{directory}: its archive lives, as process {header.pid}, and only it may write"
        )
    with CatalogWriter(directory, CatalogOptions(capacity=0, checksum=checksum)) as catalog:
        yield catalog


def chosen(catalog: Catalog, recording_id: int | None) -> list[CatalogEntry]:
    """All entries, or the one that was asked for. Raises Failure."""
    if recording_id is None:
        return list(catalog.entries())
    entry = catalog.entry(recording_id)
    if entry is None:
        raise Failure(f"{catalog.path}: there is no recording {recording_id}", NOTHING)
    return [entry]
