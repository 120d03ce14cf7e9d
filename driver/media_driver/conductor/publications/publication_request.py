"""A client's request to add a publication, with its parsed and validated channel.

`publication_commands` creates the request. `network_publications` or `ipc_publications` executes
it.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from windtunnel.driver.channel.publication_parameters import PublicationParameters
from windtunnel.driver.media_driver.conductor.publications.publication_log import (
    LocalPublication,
    State,
)

_PUBLICATION = TypeVar("_PUBLICATION", bound=LocalPublication)


class PublicationRequest(NamedTuple):
    """A parsed ADD_PUBLICATION or ADD_EXCLUSIVE_PUBLICATION command."""

    registration_id: int
    client_id: int
    stream_id: int
    channel_text: str
    parameters: PublicationParameters
    is_exclusive: bool

    def find_shared(self, in_stream: Iterable[_PUBLICATION]) -> _PUBLICATION | None:
        """Return the concurrent publication of the stream that the client will share, or None if a
        new one must be created.
        """
        if self.is_exclusive:
            return None
        correlation_id = self.parameters.response_correlation_id
        for item in in_stream:
            is_same = item.parameters.response_correlation_id == correlation_id
            if is_same and item.state is State.ACTIVE and not item.is_exclusive:
                return item
        return None

    def identity(self, session_id: int) -> tuple[int, int, int, int, str]:
        """Return the publication's ids and channel as arguments for `StreamCounters.stream`."""
        return (
            self.registration_id,
            self.client_id,
            session_id,
            self.stream_id,
            self.channel_text,
        )
