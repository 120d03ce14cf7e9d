"""Adds the publication on which a replay to a response channel is requested.

The source archive sends the replay to the subscription that the publication's channel identifies.
Source: archive-protocol 7.
"""

from windtunnel.driver.archive.replication.source_archive import poll_or_retry
from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication


class RequestPublication:
    """The publication of one request to the source archive."""

    def __init__(
        self, client: Aeron, channel: ChannelUri, stream_id: int, subscription_id: int
    ) -> None:
        """Ask the driver to add the publication, without waiting for the response. `channel` and
        `stream_id` are those of the control session.
        """
        self._client, self._stream_id = client, stream_id
        self._channel = channel.without(uri_param.SESSION_ID).with_param(
            uri_param.RESPONSE_CORRELATION_ID, subscription_id
        )
        self.publication: ExclusivePublication | None = None
        """The publication, or None until the driver has added it."""
        self._registration_id = self._add()

    def _add(self) -> int:
        return self._client.async_add_exclusive_publication(str(self._channel), self._stream_id)

    def poll(self) -> bool:
        """Return whether a request can be sent. Raises RegistrationError."""
        if self.publication is None:
            self.publication, self._registration_id = poll_or_retry(
                self._client.get_exclusive_publication, self._registration_id, self._add
            )
        found = self.publication
        return found is not None and found.is_connected and found.available_window > 0

    def close(self) -> None:
        """Close the publication, or abandon it if the driver has not added it."""
        if self.publication is not None:
            self.publication.close()
        else:
            self._client.abandon(self._registration_id)
