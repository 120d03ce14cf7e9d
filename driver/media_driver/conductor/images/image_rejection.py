"""A client refuses an image, and its publisher is to hear why.

The position that comes along decides nothing. Source: spec 3.12 and 7.3, Aeron 1.53.
"""

from collections.abc import Callable

from windtunnel.driver.cnc import counters
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import RejectImage
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.wire import error

Rejection = Callable[[int, str], bool]
"""Given an image's correlation id and the reason; answers whether there is such an image."""


class ImageRejection:
    """Carries out what clients ask; images from the network are looked for before local ones."""

    def __init__(self, parts: DriverResources, network: Rejection, ipc: Rejection) -> None:
        self._parts = parts
        self._ways = (network, ipc)

    def reject(self, command: RejectImage) -> None:
        """Refuse an image; the client is answered at once."""
        if len(command.reason.encode()) > error.TEXT_LENGTH_MAX:
            raise CommandError(
                f"Invalidation reason must be {error.TEXT_LENGTH_MAX} bytes or less",
                ErrorCode.GENERIC_ERROR,
            )
        image_id = command.image_correlation_id
        if not any(way(image_id, command.reason) for way in self._ways):
            raise CommandError(
                f"Unable to resolve image for correlationId={image_id}", ErrorCode.GENERIC_ERROR
            )
        counters.increment(self._parts.values, system_counters.IMAGES_REJECTED)
        self._parts.clients.succeed(command.correlation_id)
