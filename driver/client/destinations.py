"""Adding and removing the places that a stream with `control-mode=manual` goes to or comes from.

Publications and subscriptions share it: only the commands differ. Each call waits for the driver;
its `async_` twin returns the command's id at once, and `Aeron.is_command_active` tells whether the
driver still owes the answer. What the driver refuses is raised by the one and goes to the error
handler from the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windtunnel.driver.client.errors import ClosedError
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)

if TYPE_CHECKING:
    from windtunnel.driver.client.conductor.conductor import ClientConductor


_DestinationCommand = (
    AddDestination | AddReceiveDestination | RemoveDestination | RemoveReceiveDestination
)


class Destinations:
    """What a publication and a subscription can do about their destinations."""

    ADD_DESTINATION: ClassVar[type[_DestinationCommand]]
    REMOVE_DESTINATION: ClassVar[type[_DestinationCommand]]

    _conductor: ClientConductor
    registration_id: int
    channel: str
    is_closed: bool

    def require_open(self) -> None:
        """Raise ClosedError where it was closed before."""
        if self.is_closed:
            raise ClosedError(f"{type(self).__name__.lower()} of {self.channel} is closed")

    def add_destination(self, channel: str) -> int:
        """One more place. Returns the id of the destination. Raises RegistrationError."""
        destination_id = self._ask(self.ADD_DESTINATION, channel, is_collected=True)
        self._conductor.wait(destination_id)
        return destination_id

    def remove_destination(self, channel: str) -> None:
        """One place less, named as it was added. Raises RegistrationError."""
        self._conductor.wait(self._ask(self.REMOVE_DESTINATION, channel, is_collected=True))

    def async_add_destination(self, channel: str) -> int:
        """`add_destination` without waiting. Returns the id of command and destination."""
        return self._ask(self.ADD_DESTINATION, channel, is_collected=False)

    def async_remove_destination(self, channel: str) -> int:
        """`remove_destination` without waiting. Returns the command's id."""
        return self._ask(self.REMOVE_DESTINATION, channel, is_collected=False)

    def _ask(self, kind: type[_DestinationCommand], channel: str, *, is_collected: bool) -> int:
        self.require_open()
        client_id, own_id = self._conductor.client_id, self.registration_id
        return self._conductor.ask(
            lambda new: kind(client_id, new, own_id, channel), is_collected=is_collected
        )


class ReceiveDestinations(Destinations):
    """Of a subscription."""

    ADD_DESTINATION, REMOVE_DESTINATION = AddReceiveDestination, RemoveReceiveDestination


class SendDestinations(Destinations):
    """Of a publication; these can be named by their ids too."""

    ADD_DESTINATION, REMOVE_DESTINATION = AddDestination, RemoveDestination

    def remove_destination_by_id(self, destination_id: int) -> None:
        """Send no longer to the place that `add_destination` gave that id to."""
        self._conductor.wait(self._ask_remove_by_id(destination_id, is_collected=True))

    def async_remove_destination_by_id(self, destination_id: int) -> int:
        """`remove_destination_by_id` without waiting. Returns the command's id."""
        return self._ask_remove_by_id(destination_id, is_collected=False)

    def _ask_remove_by_id(self, destination_id: int, *, is_collected: bool) -> int:
        self.require_open()
        client_id, own_id = self._conductor.client_id, self.registration_id
        return self._conductor.ask(
            lambda new: RemoveDestinationById(client_id, new, own_id, destination_id),
            is_collected=is_collected,
        )
