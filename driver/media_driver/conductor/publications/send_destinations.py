"""Executes commands that add or remove destinations of publications with control-mode=manual.

A command succeeds once it is queued for the sender. A destination whose name cannot be resolved is
added without an address, and its name is re-resolved later. Removing an unknown destination
succeeds. Source: spec 4.9 and 7.3, Aeron 1.53.
"""

from collections.abc import Callable
from typing import Protocol

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import address_text, admission, uri, uri_param
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.channel.udp_channel import ControlMode
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import (
    AddDestination,
    RemoveDestination,
    RemoveDestinationById,
)
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import (
    SendChannelEndpoints,
    SendDestination,
)
from windtunnel.driver.media_driver.sender import destination_tracker


class HasEndpoint(Protocol):
    """The interface of a publication that has a channel endpoint."""

    endpoint: ChannelEndpoint


class SendDestinations:
    """Handles the commands that add and remove publication destinations.

    `find_publication` maps a registration id to its publication.
    """

    def __init__(
        self,
        resources: DriverResources,
        endpoints: SendChannelEndpoints,
        find_publication: Callable[[int], HasEndpoint | None],
    ) -> None:
        self._resources = resources
        self._endpoints = endpoints
        self._find_publication = find_publication

    def add(self, command: AddDestination) -> None:
        """Add a destination to the channel of a publication."""
        slot = self._find_slot(command.registration_id)
        endpoint_text = _check(command.channel)
        if len(self._endpoints.destinations(slot)) >= destination_tracker.DESTINATIONS_MAX:
            raise CommandError(
                f"publication {command.registration_id}: all "
                f"{destination_tracker.DESTINATIONS_MAX} destinations of its channel are in use",
                ErrorCode.RESOURCE_TEMPORARILY_UNAVAILABLE,
            )
        address = self._resolve(endpoint_text)
        destination = SendDestination(command.correlation_id, endpoint_text, address)
        self._endpoints.add_destination(slot, destination)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def remove(self, command: RemoveDestination) -> None:
        """Remove the most recently added destination that has the address in the command's
        channel.
        """
        slot = self._find_slot(command.registration_id)
        self._endpoints.remove_destination(slot, self._resolve(_check(command.channel)))
        self._resources.clients.operation_succeeded(command.correlation_id)

    def remove_by_id(self, command: RemoveDestinationById) -> None:
        """Remove a destination by its registration id."""
        slot = self._find_slot(command.registration_id)
        self._endpoints.remove_destination_by_id(slot, command.destination_registration_id)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def _find_slot(self, registration_id: int) -> int:
        publication = self._find_publication(registration_id)
        if publication is None:
            raise CommandError(
                f"unknown publication {registration_id}", ErrorCode.UNKNOWN_PUBLICATION
            )
        endpoint = publication.endpoint
        if endpoint.channel.control_mode is not ControlMode.MANUAL:
            raise ConfigurationError(
                f"channel '{endpoint.channel.uri}' of publication {registration_id}: expected "
                f"{uri_param.CONTROL_MODE}={ControlMode.MANUAL.value} to control destinations"
            )
        return endpoint.slot

    def _resolve(self, endpoint_text: str) -> SocketAddress | None:
        parsed = address_text.parse_host_port(uri_param.ENDPOINT, endpoint_text)
        try:
            host, scope_id = self._resources.resolver.resolve(parsed.host, uri_param.ENDPOINT)
        except UnknownHostError:
            return None
        return SocketAddress(host, parsed.port, scope_id)


def _check(channel_text: str) -> str:
    """Validate a destination's channel. Returns the channel's endpoint parameter."""
    parsed: ChannelUri = uri.parse(channel_text)
    admission.check_send_destination(parsed)
    endpoint_text = parsed.get(uri_param.ENDPOINT)
    assert endpoint_text is not None
    return endpoint_text
