"""A client's request to add a publication, with its parsed and validated channel.

`publication_commands` creates the request. `network_publications` or `ipc_publications` executes
it.
"""

from typing import NamedTuple

from windtunnel.driver.channel.publication_parameters import PublicationParameters


class PublicationRequest(NamedTuple):
    """A parsed ADD_PUBLICATION or ADD_EXCLUSIVE_PUBLICATION command."""

    registration_id: int
    client_id: int
    stream_id: int
    channel_text: str
    parameters: PublicationParameters
    is_exclusive: bool

    def identity(self, session_id: int) -> tuple[int, int, int, int, str]:
        """Return the publication's ids and channel as arguments for `StreamCounters.stream`."""
        return (
            self.registration_id,
            self.client_id,
            session_id,
            self.stream_id,
            self.channel_text,
        )
