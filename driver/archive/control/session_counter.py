"""The counter of one control session, by which other programs find the session.

    key        archive id, control session id
    label      control-session: [<client info> ]sourceIdentity=<> sessionId=<> - archiveId=<>
    reference  the registration id of the response publication
    value      the control session id

The label identifies the client's request publication. Source: archive-protocol 2.5, 5.6.
"""

import struct

from windtunnel.driver.archive.control.session_context import SessionContext
from windtunnel.driver.archive.observation import archive_counters
from windtunnel.driver.base.atomics import put_i64
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.image.header import SourceImage
from windtunnel.driver.cnc import counter_label, counters

_KEY = struct.Struct("<2q")


class SessionCounter:
    """The counter of one control session."""

    def __init__(
        self, context: SessionContext, session_id: int, image: SourceImage, client_info: str
    ) -> None:
        """Ask the driver to add the counter, without waiting for the response."""
        self._client, self._session_id = context.client, session_id
        self._counter: Counter | None = None
        head = f"control-session: {client_info}" if client_info else "control-session:"
        tail = f" sourceIdentity={image.source_identity} sessionId={image.session_id}"
        tail += archive_counters.suffix(context.archive_id)
        self._registration_id = self._client.async_add_counter(
            archive_counters.CONTROL_SESSION, _KEY.pack(context.archive_id, session_id),
            counter_label.fit_label(head, tail),
        )  # fmt: skip

    def is_added(self) -> bool:
        """Return whether the driver has added the counter. Raises RegistrationError if it rejects
        the counter.
        """
        if self._counter is None:
            self._counter = self._client.get_counter(self._registration_id)
        return self._counter is not None

    def publish(self, response_publication_id: int) -> None:
        """Set the counter's reference and value. The counter must have been added."""
        assert self._counter is not None
        at = self._counter.counter_id * counters.COUNTER_LENGTH + counters.REFERENCE_ID
        put_i64(self._client.counters.values, at, response_publication_id)
        self._counter.set(self._session_id)

    def close(self) -> None:
        """Close the counter, or abandon it if the driver has not added it."""
        if self._counter is not None:
            self._counter.close()
        else:
            self._client.abandon(self._registration_id)
