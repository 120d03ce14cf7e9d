"""What every operation of an archive needs, made once when it starts."""

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
from windtunnel.driver.archive.storage.segment_file import file_name, segment_base
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.aeron import Aeron


@dataclass(frozen=True)
class ArchiveResources:
    """Of one archive, for its conductor's thread."""

    settings: ArchiveSettings
    client: Aeron
    clock: Clock
    archive_id: int
    catalog: CatalogWriter
    errors: ArchiveErrors
    counters: ArchiveCounters

    @property
    def directory(self) -> Path:
        """Where the recordings are."""
        return self.settings.dir

    def recording(self, recording_id: int) -> RecordingDescriptor:
        """What is known of a recording. Raises Refusal where there is none."""
        found = self.catalog.descriptor(recording_id)
        if found is None:
            raise unknown_recording(recording_id)
        return found

    def require_space(self) -> None:
        """Raise Refusal where the disk has too little left for another recording."""
        threshold = self.settings.low_storage_space_threshold
        try:
            found = os.statvfs(self.directory)
        except OSError as error:
            raise StorageError(f"cannot look at {self.directory}: {error.strerror}") from error
        usable = found.f_bavail * found.f_frsize
        if usable <= threshold:
            raise RequestRejected(
                f"low storage space: {self.directory} has {usable} usable bytes, "
                f"threshold={threshold}", ErrorCode.STORAGE_SPACE,
            )  # fmt: skip

    def segment_path(self, recording_id: int, base: int) -> Path:
        """Where a segment file is, or would be."""
        return self.directory / file_name(recording_id, base)


def base_of(recording: RecordingDescriptor, position: int) -> int:
    """The base of the file in which a position lies."""
    return segment_base(
        recording.start_position, position, recording.term_buffer_length,
        recording.segment_file_length,
    )  # fmt: skip
