"""Executes commands that add or remove destinations of a multi-destination subscription.

A UDP destination gets its own socket. A local destination (IPC or spy) is delegated. A remove
command names the channel with which the destination was added. Removing an unknown destination
succeeds. Source: spec 3.7, 7.3 and 9.2, Aeron 1.53.
"""

from typing import Protocol

from windtunnel.driver.channel import admission, udp_channel, uri
from windtunnel.driver.channel.udp_channel import ControlMode, UdpChannel
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import AddReceiveDestination, RemoveReceiveDestination
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_endpoints import ChannelEndpoint
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.subscriptions import SubscriptionLinks

_NO_UNIQUE_ID = 0
"""Id for parsing a destination. It is constant, so each parse yields the same canonical form."""


class LocalDestinations(Protocol):
    """The interface through which local destinations are added to a subscription and removed. An
    implementation also responds to the client.
    """

    def add_local_destination(self, command: AddReceiveDestination, parsed: ChannelUri) -> None:
        """Add a local destination (IPC or spy) to a subscription."""

    def remove_local_destination(self, command: RemoveReceiveDestination) -> None:
        """Remove a local destination (IPC or spy) from a subscription."""


class ReceiveDestinations:
    """Handles the commands that add and remove subscription destinations."""

    def __init__(
        self,
        resources: DriverResources,
        endpoints: ReceiveChannelEndpoints,
        links: SubscriptionLinks,
        local: LocalDestinations,
    ) -> None:
        self._resources = resources
        self._endpoints = endpoints
        self._links = links
        self._local = local

    def add(self, command: AddReceiveDestination) -> None:
        """Add a destination to a subscription."""
        parsed = uri.parse(command.channel)
        if not parsed.is_udp or parsed.is_spy:
            self._find(command.registration_id, command.client_id)
            self._local.add_local_destination(command, parsed)
            return
        channel = self._resolve(parsed)
        endpoint = self._find(command.registration_id, command.client_id)
        admission.check_destination(parsed)
        admission.refuse_ats(channel)
        self._endpoints.add_destination(endpoint, channel, command.registration_id)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def remove(self, command: RemoveReceiveDestination) -> None:
        """Remove a destination from a subscription."""
        parsed = uri.parse(command.channel)
        if not parsed.is_udp or parsed.is_spy:
            self._local.remove_local_destination(command)
            return
        channel = self._resolve(parsed)
        endpoint = self._find(command.registration_id, command.client_id)
        self._endpoints.remove_destination(endpoint, channel)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def _resolve(self, parsed: ChannelUri) -> UdpChannel:
        return udp_channel.resolve(parsed, self._resources.resolver, _NO_UNIQUE_ID)

    def _find(self, registration_id: int, client_id: int) -> ChannelEndpoint:
        """Return the endpoint of a multi-destination subscription. Raises CommandError if the
        subscription is unknown or its channel does not have `control-mode=manual`.
        """
        subscription = self._links.subscriptions.get(registration_id)
        if subscription is None or subscription.endpoint is None:
            raise CommandError(
                f"unknown subscription client_id={client_id} registration_id={registration_id}",
                ErrorCode.UNKNOWN_SUBSCRIPTION,
            )
        if subscription.endpoint.channel.control_mode is not ControlMode.MANUAL:
            raise CommandError("channel does not allow manual control", ErrorCode.INVALID_CHANNEL)
        return subscription.endpoint
