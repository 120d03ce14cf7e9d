"""Objects that all operations of an archive share, created once when the archive starts."""

import os
from dataclasses import dataclass
from pathlib import Path

from windtunnel.driver.archive.control.request_rejected import RequestRejected, unknown_recording
from windtunnel.driver.archive.observation.archive_counters import ArchiveCounters
from windtunnel.driver.archive.observation.archive_errors import ArchiveErrors
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.settings.archive_settings import ArchiveSettings
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.storage.segment_file import file_name
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.aeron import Aeron


@dataclass(frozen=True)
class ArchiveResources:
    """Objects that all operations of an archive share. Only the conductor's thread uses them."""

    settings: ArchiveSettings
    client: Aeron
    clock: Clock
    archive_id: int
    catalog: CatalogWriter
    errors: ArchiveErrors
    counters: ArchiveCounters

    @property
    def directory(self) -> Path:
        """The directory that contains the recordings."""
        return self.settings.dir

    def recording(self, recording_id: int) -> RecordingDescriptor:
        """Return the descriptor of a recording. Raises RequestRejected if it is unknown."""
        descriptor = self.catalog.descriptor(recording_id)
        if descriptor is None:
            raise unknown_recording(recording_id)
        return descriptor

    def require_space(self) -> None:
        """Raise RequestRejected if the disk has too little space for a new recording."""
        threshold = self.settings.low_storage_space_threshold
        try:
            file_system = os.statvfs(self.directory)
        except OSError as error:
            raise StorageError(f"cannot stat {self.directory}: {error.strerror}") from error
        usable = file_system.f_bavail * file_system.f_frsize
        if usable <= threshold:
            raise RequestRejected(
                f"low storage space in {self.directory}: expected more than {threshold} usable "
                f"bytes, found {usable}", ErrorCode.STORAGE_SPACE,
            )  # fmt: skip

    def segment_path(self, recording_id: int, base: int) -> Path:
        """Return the path of a segment file, whether the file exists or not."""
        return self.directory / file_name(recording_id, base)


def client_name(archive_id: int) -> str:
    """Return the name of an archive in the counters of its driver and of other archives."""
    return f"archive archiveId={archive_id}"
