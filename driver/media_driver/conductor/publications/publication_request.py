"""What a client asks for when it adds a publication: its command with the channel read and checked.

Made by the commands' room and carried out by the rooms of network and IPC publications.
"""

from dataclasses import dataclass

from windtunnel.driver.channel.publication_parameters import PublicationParameters


@dataclass(frozen=True)
class PublicationRequest:
    """One ADD_PUBLICATION or ADD_EXCLUSIVE_PUBLICATION."""

    registration_id: int
    client_id: int
    stream_id: int
    channel_text: str
    parameters: PublicationParameters
    is_exclusive: bool

    def identity(self, session_id: int) -> tuple[int, int, int, int, str]:
        """What its counters are known by."""
        return (
            self.registration_id,
            self.client_id,
            session_id,
            self.stream_id,
            self.channel_text,
        )
