"""Executes commands that add or remove subscriptions and their local destinations.

Removing a subscription does not notify the client about its images, but removing a local
destination does. Source: spec 3.7, 4.11 and 7.3, Aeron 1.53.
"""

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import admission, subscription_parameters
from windtunnel.driver.channel.subscription_parameters import SubscriptionParameters
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.channel.uri import ChannelUri
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.destination import AddReceiveDestination, RemoveReceiveDestination
from windtunnel.driver.command.subscription import (
    AddSubscription,
    RemoveSubscription,
    SubscriptionReady,
)
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.client_registry import ClientRegistry
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_reader import ChannelReader
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Readable,
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.publications.ipc_publication import IpcPublication
from windtunnel.driver.media_driver.conductor.publications.ipc_publications import IpcPublications
from windtunnel.driver.media_driver.conductor.publications.network_publication import (
    NetworkPublication,
)
from windtunnel.driver.media_driver.conductor.publications.network_publications import (
    NetworkPublications,
)
from windtunnel.driver.media_driver.conductor.publications.publication_commands import (
    NO_CHANNEL_STATUS,
)


class SubscriptionCommands:
    """Handles the commands that add and remove subscriptions and their local destinations."""

    def __init__(
        self,
        resources: DriverResources,
        clients: ClientRegistry,
        channels: ChannelReader,
        endpoints: ReceiveChannelEndpoints,
        links: SubscriptionLinks,
        images: PublicationImages,
        network: NetworkPublications,
        ipc: IpcPublications,
    ) -> None:
        self._resources = resources
        self._clients = clients
        self._channels = channels
        self._endpoints = endpoints
        self._links = links
        self._images = images
        self._network = network
        self._ipc = ipc
        self._defaults = resources.subscription_defaults()

    def add(self, command: AddSubscription) -> None:
        """Add a subscription and link it to the existing streams that match it."""
        parsed = self._channels.parse(command.channel)
        parameters = subscription_parameters.parse(parsed, self._defaults)
        subscription = Subscription(
            command.correlation_id,
            command.client_id,
            command.stream_id,
            parsed,
            command.channel,
            parameters,
            session_id=parameters.session_id,
            is_response=parameters.is_response,
        )
        if parsed.is_spy:
            subscription.spied_channel = self._channels.resolve(parsed)
            self._notify_ready(subscription, NO_CHANNEL_STATUS)
            self._network.spies.join(subscription)
        elif parsed.is_ipc:
            self._notify_ready(subscription, NO_CHANNEL_STATUS)
            self._ipc.join(subscription)
        else:
            self._add_network(subscription, self._channels.resolve(parsed))

    def _add_network(self, subscription: Subscription, channel: UdpChannel) -> None:
        admission.check_subscription(channel)
        self._refuse_conflict(subscription, channel)
        self._endpoints.check_interest_capacity()
        endpoint = self._endpoints.get_or_open(channel, subscription.registration_id)
        subscription.endpoint = endpoint
        if not subscription.is_response:
            self._endpoints.add_interest(endpoint, subscription.stream_id, subscription.session_id)
        self._notify_ready(subscription, endpoint.status_counter_id)
        self._images.join(subscription)

    def _refuse_conflict(self, subscription: Subscription, channel: UdpChannel) -> None:
        existing = self._endpoints.find(channel)
        if existing is None:
            return
        for other in self._links.subscriptions.values():
            is_same = other.endpoint is existing and other.stream_id == subscription.stream_id
            if is_same and other.parameters.session_id == subscription.parameters.session_id:
                subscription.parameters.refuse_conflict(
                    other.parameters, subscription.channel_text, other.channel_text
                )

    def _notify_ready(self, subscription: Subscription, status_id: int) -> None:
        self._links.subscriptions[subscription.registration_id] = subscription
        try:
            self._clients.get_or_add(subscription.client_id)
        except DriverError:
            self._drop(subscription)
            raise
        self._resources.clients.transmit(SubscriptionReady(subscription.registration_id, status_id))

    def remove(self, command: RemoveSubscription) -> None:
        """Remove a subscription and all its links."""
        subscription = self._find(command.registration_id, command.client_id)
        self._drop(subscription)
        self._resources.clients.operation_succeeded(command.correlation_id)

    def _find(self, registration_id: int, client_id: int) -> Subscription:
        subscription = self._links.subscriptions.get(registration_id)
        if subscription is None:
            raise CommandError(
                f"unknown subscription client_id={client_id} registration_id={registration_id}",
                ErrorCode.UNKNOWN_SUBSCRIPTION,
            )
        return subscription

    def remove_all_of(self, client_id: int) -> None:
        """Remove all subscriptions of a client."""
        for subscription in list(self._links.subscriptions.values()):
            if subscription.client_id == client_id:
                self._drop(subscription)

    def _drop(self, subscription: Subscription) -> None:
        self._on_readers_removed(self._links.unlink_subscription(subscription))
        endpoint = subscription.endpoint
        if endpoint is None:
            return
        if not subscription.is_response:
            self._endpoints.remove_interest(
                endpoint, subscription.stream_id, subscription.session_id
            )
        self._endpoints.release(endpoint)

    def _on_readers_removed(self, streams: list[Readable]) -> None:
        for stream in streams:
            if isinstance(stream, IpcPublication):
                self._ipc.on_reader_gone(stream)
            elif isinstance(stream, NetworkPublication):
                self._network.spies.refresh(stream)

    def add_local_destination(self, command: AddReceiveDestination, parsed: ChannelUri) -> None:
        """Add a local destination (IPC or spy) to a multi-destination subscription."""
        owner = self._find(command.registration_id, command.client_id)
        parameters: SubscriptionParameters = subscription_parameters.parse(parsed, self._defaults)
        destination = Subscription(
            owner.registration_id,
            command.client_id,
            owner.stream_id,
            parsed,
            command.channel,
            parameters,
            session_id=parameters.session_id,
        )
        if parsed.is_spy:
            destination.spied_channel = self._channels.resolve(parsed)
        owner.local_destinations.append(destination)
        self._resources.clients.operation_succeeded(command.correlation_id)
        if parsed.is_spy:
            self._network.spies.join(destination)
        else:
            self._ipc.join(destination)

    def remove_local_destination(self, command: RemoveReceiveDestination) -> None:
        """Remove a local destination (IPC or spy) from a subscription."""
        owner = self._find(command.registration_id, command.client_id)
        for destination in owner.local_destinations:
            if destination.channel_text == command.channel:
                break
        else:
            raise CommandError(
                f"unknown destination '{command.channel}' of subscription "
                f"{command.registration_id}",
                ErrorCode.UNKNOWN_SUBSCRIPTION,
            )
        self._resources.clients.operation_succeeded(command.correlation_id)
        for link in destination.links:
            self._links.notify_unavailable(link)
        self._on_readers_removed(self._links.unlink_reader(destination))
        owner.local_destinations.remove(destination)
