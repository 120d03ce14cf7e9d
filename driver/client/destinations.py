"""Adds and removes destinations of publications and subscriptions with `control-mode=manual`.

Publications and subscriptions differ only in the commands that they send. Each method waits for the
driver's response and raises its error. The `async_` variant returns the command's correlation id
immediately. `Aeron.is_command_active` returns whether the command is still waiting for a response,
and an error is passed to the error handler.
"""

from __future__ import annotations

from typing import ClassVar

from windtunnel.driver.client.conductor_protocol import Conductor
from windtunnel.driver.client.errors import ClosedError
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)

_DestinationCommand = (
    AddDestination | AddReceiveDestination | RemoveDestination | RemoveReceiveDestination
)


class Destinations:
    """Base class of publications and subscriptions, with the methods that add and remove their
    destinations.
    """

    ADD_DESTINATION: ClassVar[type[_DestinationCommand]]
    REMOVE_DESTINATION: ClassVar[type[_DestinationCommand]]

    _conductor: Conductor
    channel: str
    is_closed: bool

    @property
    def _owner_id(self) -> int:
        """The id with which commands name the publication or subscription."""
        raise NotImplementedError

    def require_open(self) -> None:
        """Raise ClosedError if the publication or subscription is closed."""
        if self.is_closed:
            raise ClosedError(f"{type(self).__name__.lower()} of {self.channel} is closed")

    def add_destination(self, channel: str) -> int:
        """Add a destination. Returns the destination's registration id. Raises RegistrationError if
        the driver rejects the destination.
        """
        destination_id = self._send(self.ADD_DESTINATION, channel, is_collected=True)
        self._conductor.commands.wait(destination_id)
        return destination_id

    def remove_destination(self, channel: str) -> None:
        """Remove the destination that was added with the given channel.

        Raises RegistrationError.
        """
        self._conductor.commands.wait(
            self._send(self.REMOVE_DESTINATION, channel, is_collected=True)
        )

    def async_add_destination(self, channel: str, *, is_collected: bool = False) -> int:
        """Send the command to add a destination, without waiting for the response.

        Returns the command's correlation id, which is also the destination's registration id. With
        `is_collected`, `is_destination_added` raises the error that would otherwise be passed to
        the error handler.
        """
        return self._send(self.ADD_DESTINATION, channel, is_collected=is_collected)

    def is_destination_added(self, destination_id: int) -> bool:
        """Return whether the driver has responded to a command that is collected. Returns True
        once.

        Raises RegistrationError or CommandTimeoutError once, and ClientError for an unknown id.
        """
        return self._conductor.commands.take(destination_id) is not None

    def async_remove_destination(self, channel: str) -> int:
        """Send the command to remove the destination with the given channel. Returns the command's
        correlation id.
        """
        return self._send(self.REMOVE_DESTINATION, channel, is_collected=False)

    def _send(self, kind: type[_DestinationCommand], channel: str, *, is_collected: bool) -> int:
        self.require_open()
        client_id, owner_id = self._conductor.commands.client_id, self._owner_id
        return self._conductor.commands.send_command(
            lambda correlation_id: kind(client_id, correlation_id, owner_id, channel),
            is_collected=is_collected,
        )


class ReceiveDestinations(Destinations):
    """Base class of subscriptions, with the methods that add and remove their destinations."""

    ADD_DESTINATION, REMOVE_DESTINATION = AddReceiveDestination, RemoveReceiveDestination

    registration_id: int

    @property
    def _owner_id(self) -> int:
        return self.registration_id


class SendDestinations(Destinations):
    """Base class of publications, with the methods that add and remove their destinations. A
    destination can also be removed by its id.
    """

    ADD_DESTINATION, REMOVE_DESTINATION = AddDestination, RemoveDestination

    original_registration_id: int

    @property
    def _owner_id(self) -> int:
        # Aeron's drivers do not know the ids of the commands that shared the publication.
        return self.original_registration_id

    def remove_destination_by_id(self, destination_id: int) -> None:
        """Remove the destination with the id that `add_destination` returned.

        Raises RegistrationError.
        """
        self._conductor.commands.wait(self._send_remove_by_id(destination_id, is_collected=True))

    def async_remove_destination_by_id(self, destination_id: int) -> int:
        """Send the command to remove the destination with the given id. Returns the command's
        correlation id.
        """
        return self._send_remove_by_id(destination_id, is_collected=False)

    def _send_remove_by_id(self, destination_id: int, *, is_collected: bool) -> int:
        self.require_open()
        client_id, owner_id = self._conductor.commands.client_id, self._owner_id
        return self._conductor.commands.send_command(
            lambda correlation_id: RemoveDestinationById(
                client_id, correlation_id, owner_id, destination_id
            ),
            is_collected=is_collected,
        )
