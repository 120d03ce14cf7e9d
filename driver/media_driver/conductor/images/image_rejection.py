"""Executes REJECT_IMAGE commands, with which a client rejects an image and gives a reason.

The position in the command is ignored. Source: spec 3.12 and 7.3, Aeron 1.53.
"""

from collections.abc import Callable

from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import RejectImage
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.wire import error

RejectFunction = Callable[[int, str], bool]
"""Function that rejects the image with the given correlation id. Returns False if there is no such
image."""


class ImageRejection:
    """Rejects images by correlation id. Searches the network images first, then the IPC
    publications.
    """

    def __init__(
        self, resources: DriverResources, network: RejectFunction, ipc: RejectFunction
    ) -> None:
        self._resources = resources
        self._rejections = (network, ipc)

    def reject(self, command: RejectImage) -> None:
        """Execute a REJECT_IMAGE command and respond to the client."""
        if len(command.reason.encode()) > error.TEXT_LENGTH_MAX:
            raise CommandError(
                f"Invalidation reason must be {error.TEXT_LENGTH_MAX} bytes or less",
                ErrorCode.GENERIC_ERROR,
            )
        image_id = command.image_correlation_id
        if not any(reject(image_id, command.reason) for reject in self._rejections):
            raise CommandError(
                f"Unable to resolve image for correlationId={image_id}", ErrorCode.GENERIC_ERROR
            )
        counters.increment(self._resources.values, system_counters.IMAGES_REJECTED)
        self._resources.clients.operation_succeeded(command.correlation_id)
