"""Forwards error frames from receivers to clients and to the error log.

The sender has validated the frame and found its publication. Source: spec 1.7, 3.12 and 7.2,
Aeron 1.53.
"""

from collections.abc import Callable

import numpy as np

from windtunnel.driver.channel.socket_address import SocketAddress, read_name
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.response import PublicationError
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.sender import error_frames
from windtunnel.driver.wire import error

NULL_VALUE = -1
_UNKNOWN_SOURCE = SocketAddress("0.0.0.0", 0)


class PublicationErrors:
    """Handles the sender's events that report error frames from receivers.

    `registration_id_of` maps a sender slot to the publication's registration id.
    """

    def __init__(
        self, resources: DriverResources, registration_id_of: Callable[[int], int | None]
    ) -> None:
        self._resources = resources
        self._registration_id_of = registration_id_of

    def on_event(self, record: np.ndarray) -> None:
        """Forward the error frame of a PUBLICATION_ERROR event, and free the frame's slot."""
        publication_slot, destination_id, slot, name_length = (int(word) for word in record[1:5])
        ring = self._resources.sender.error_frames
        start = int(error_frames.slot_at(slot))
        response = self._read(ring, start, destination_id, name_length, publication_slot)
        error_frames.release(ring)
        if response is None:
            return
        report_error(self._resources, response)

    def on_group_tag_malformed(self, record: np.ndarray) -> None:
        """Record an error for a malformed group tag (event GROUP_TAG_MALFORMED)."""
        self._resources.record_error(
            ErrorCode.GENERIC_ERROR,
            "expected a group tag of 0 or 8 bytes in a status message for tagged flow control",
        )

    def _read(
        self, ring: np.ndarray, start: int, destination_id: int, name_length: int, slot: int
    ) -> PublicationError | None:
        registration_id = self._registration_id_of(slot)
        if registration_id is None:
            return None
        at = start + error_frames.FRAME
        source = read_name(ring[start : start + error_frames.FRAME], name_length) or _UNKNOWN_SOURCE
        length = int(error.text_length(ring, at))
        text = ring[at + error.TEXT : at + error.TEXT + length].tobytes()
        return PublicationError(
            registration_id=registration_id,
            destination_registration_id=destination_id,
            session_id=int(error.session_id(ring, at)),
            stream_id=int(error.stream_id(ring, at)),
            receiver_id=int(error.receiver_id(ring, at)),
            group_tag=int(error.group_tag(ring, at))
            if error.has_group_tag(ring, at)
            else NULL_VALUE,
            source_address=source.host,
            source_port=source.port,
            error_code=int(error.error_code(ring, at)),
            message=text.decode("utf-8", "replace"),
        )


def report_error(resources: DriverResources, response: PublicationError) -> None:
    """Record a publication error in the error log and transmit it to clients."""
    # As in the C driver's log, this entry has no code and no description in front of it.
    resources.record_error(
        None,
        f"onPublicationError: registrationId={response.registration_id}, "
        f"destinationRegistrationId={response.destination_registration_id}, "
        f"sessionId={response.session_id}, streamId={response.stream_id}, "
        f"receiverId={response.receiver_id}, groupId={response.group_tag}, "
        f"errorCode={response.error_code}, errorMessage={response.message}",
        f"onPublicationError: registrationId={response.registration_id}",
    )
    resources.clients.transmit(response)
