"""Ends streams that have lost pages of their log buffers, because a file was truncated or the file
system is full.

A client truncated a file, or the file system has no space for a page. The driver got pages of zeros
instead (see `bus_error_guard`), which no client shares, so the stream cannot continue. A driver
whose cnc.dat has lost pages cannot serve its clients, and ends.
"""

from collections.abc import Callable

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.files import bus_error_guard
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.conductor.publications.ipc_publications import IpcPublications
from windtunnel.driver.media_driver.conductor.publications.network_publications import (
    NetworkPublications,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import LocalPublication

KIND = "lost pages of a log buffer"
CAUSE = "the file was truncated, or its file system is full"


class LostPages:
    """Detects lost pages of log buffers. Ends and reports each affected stream once."""

    def __init__(
        self,
        resources: DriverResources,
        images: PublicationImages,
        network: NetworkPublications,
        ipc: IpcPublications,
    ) -> None:
        self._resources = resources
        self._images, self._network, self._ipc = images, network, ipc
        self._total = bus_error_guard.lost_pages_total()
        self._ended: set[LogBuffer] = set()

    def check(self) -> None:
        """End all streams whose logs have lost pages. Raises StorageError if cnc.dat has lost
        pages.
        """
        total = bus_error_guard.lost_pages_total()
        if total == self._total:
            return
        self._total = total
        cnc = self._resources.cnc
        if cnc.mapping.lost_pages:
            raise StorageError(f"{cnc.path} has lost pages: {CAUSE}. The driver cannot continue.")
        self._end_streams(lambda log: log.lost_pages > 0)

    def on_send_failure(self) -> None:
        """After a failed send, end all streams whose log files are shorter than their mappings.

        The system reads a datagram from the log and returns EFAULT for a lost page, without SIGBUS.
        """
        self._end_streams(_is_truncated)

    def _end_streams(self, is_lost: Callable[[LogBuffer], bool]) -> None:
        publications: list[LocalPublication] = [
            *self._network.publications,
            *self._ipc.publications,
        ]
        images = self._images.images
        self._ended &= {item.log for item in publications} | {item.log for item in images}
        for image in images:
            if image.log not in self._ended and is_lost(image.log):
                self._report(image.log)
                self._images.end(image)
        for publication in publications:
            if publication.log not in self._ended and is_lost(publication.log):
                self._report(publication.log)
                publication.revoke()

    def _report(self, log: LogBuffer) -> None:
        self._ended.add(log)
        self._resources.record_error(
            ErrorCode.STORAGE_SPACE,
            f"{log.path} has lost pages: {CAUSE}. Its stream was ended.",
            KIND,
        )


def _is_truncated(log: LogBuffer) -> bool:
    try:
        return log.path.stat().st_size < log.length
    except OSError:
        # It was deleted. The mapping keeps its pages.
        return False
