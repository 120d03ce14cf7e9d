"""Creates the conductor's components and maps each command type to its handler.

commands --> publications --> send endpoints    --> sender
         --> subscriptions -> receive endpoints --> receiver
                   |   links: from subscriptions to the streams that they read
"""

from collections.abc import Callable
from typing import Protocol

from windtunnel.driver.channel import uri_param
from windtunnel.driver.channel.udp_channel import UdpChannel
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.command.client import ClientClose, ClientKeepalive
from windtunnel.driver.command.counter import AddCounter, AddStaticCounter, RemoveCounter
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)
from windtunnel.driver.command.driver import TerminateDriver
from windtunnel.driver.command.image import RejectImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    GetNextAvailableSessionId,
    RemovePublication,
)
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription
from windtunnel.driver.media_driver.agent.agent_proxy import SlotPool
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.client_registry import ClientRegistry
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.endpoints.channel_reader import ChannelReader
from windtunnel.driver.media_driver.conductor.endpoints.receive_channel_endpoints import (
    ReceiveChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.endpoints.response_channels import ResponseChannels
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import (
    SendChannelEndpoints,
)
from windtunnel.driver.media_driver.conductor.images.image_rejection import ImageRejection
from windtunnel.driver.media_driver.conductor.images.publication_images import PublicationImages
from windtunnel.driver.media_driver.conductor.images.receive_destinations import ReceiveDestinations
from windtunnel.driver.media_driver.conductor.images.subscription_commands import (
    SubscriptionCommands,
)
from windtunnel.driver.media_driver.conductor.images.subscriptions import SubscriptionLinks
from windtunnel.driver.media_driver.conductor.publications.ipc_publications import IpcPublications
from windtunnel.driver.media_driver.conductor.publications.network_publication import (
    NetworkPublication,
)
from windtunnel.driver.media_driver.conductor.publications.network_publications import (
    NetworkPublications,
)
from windtunnel.driver.media_driver.conductor.publications.publication_commands import (
    PublicationCommands,
)
from windtunnel.driver.media_driver.conductor.publications.publication_errors import (
    PublicationErrors,
)
from windtunnel.driver.media_driver.conductor.publications.retired_logs import free_retired_logs
from windtunnel.driver.media_driver.conductor.publications.send_destinations import SendDestinations
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.user_counters import UserCounters
from windtunnel.driver.media_driver.name_resolution.reresolution import Reresolution, WatchedName


class HasCorrelationId(Protocol):
    """The interface of a command that has a correlation id."""

    correlation_id: int


class Components:
    """The components of the conductor, and the handlers of client commands."""

    def __init__(
        self, resources: DriverResources, manager: CountersManager, on_terminate: Callable[[], None]
    ) -> None:
        self._resources = resources
        self._on_terminate = on_terminate
        context = resources.context
        session_ids = SessionIds(
            resources.random, context.reserved_session_id_low, context.reserved_session_id_high
        )
        limit_slots = SlotPool(resources.conductor.limits.size, "publications")
        self.reresolution = Reresolution(
            resources.names,
            context.reresolution_check_interval_ns,
            resources.record_error,
            resources.clock.now_ns(),
        )
        self.send_endpoints = SendChannelEndpoints(resources, self.reresolution)
        self.receive_endpoints = ReceiveChannelEndpoints(resources)
        self.links = SubscriptionLinks(resources)
        self.network = NetworkPublications(
            resources, self.send_endpoints, self.links, session_ids, limit_slots
        )
        self.ipc = IpcPublications(resources, self.links, session_ids, limit_slots)
        self.images = PublicationImages(resources, self.receive_endpoints, self.links)
        self.responses = ResponseChannels(
            resources, self.links, self.receive_endpoints, self.images, self.ipc
        )
        self.clients = ClientRegistry(resources)
        self.user_counters = UserCounters(manager, resources.clients, self.clients)
        channels = ChannelReader(resources)
        self.publication_commands = PublicationCommands(
            resources, self.clients, channels, self.network, self.ipc, session_ids, self.responses
        )
        self.subscription_commands = SubscriptionCommands(
            resources,
            self.clients,
            channels,
            self.receive_endpoints,
            self.links,
            self.images,
            self.network,
            self.ipc,
        )
        self.send_destinations = SendDestinations(
            resources, self.send_endpoints, self._network_publication
        )
        self.receive_destinations = ReceiveDestinations(
            resources, self.receive_endpoints, self.links, self.subscription_commands
        )
        self.rejection = ImageRejection(resources, self.images.reject, self.ipc.reject)
        self.publication_errors = PublicationErrors(resources, self.network.registration_id_of)

        self._watched_controls: dict[int, WatchedName] = {}
        self.receive_endpoints.on_control_opened = self._watch_control
        self.receive_endpoints.on_control_closed = self._unwatch_control

    def _watch_control(self, slot: int, channel: UdpChannel) -> None:
        """Watch a control address: re-resolve its host name whenever nothing is received from the
        address.
        """
        text = channel.uri.get(uri_param.CONTROL)
        if text is None or channel.is_multicast:
            return
        watched = WatchedName(
            uri_param.CONTROL,
            text,
            channel.local_control,
            lambda address: self.receive_endpoints.change_control(slot, address),
            last_activity_ns=lambda: self.receive_endpoints.last_activity_ns(slot),
        )
        now_ns = self._resources.clock.now_ns()
        self._watched_controls[slot] = self.reresolution.watch(watched, now_ns)

    def _unwatch_control(self, slot: int) -> None:
        watched = self._watched_controls.pop(slot, None)
        if watched is not None:
            self.reresolution.unwatch(watched)

    def _network_publication(self, registration_id: int) -> NetworkPublication | None:
        # Java clients send the registration id of the first add command, C clients the id of their
        # own add command.
        for item in self.network.publications:
            if registration_id == item.registration_id or registration_id in item.holders:
                return item
        return None

    def command_handlers(self) -> dict[type, Callable[..., None]]:
        """Return the map from command types to handlers."""
        return {
            AddPublication: self._refuse_id_in_use(self.publication_commands.add),
            AddExclusivePublication: self._refuse_id_in_use(self.publication_commands.add),
            RemovePublication: self.publication_commands.remove,
            GetNextAvailableSessionId: self.publication_commands.next_session_id,
            AddSubscription: self._refuse_id_in_use(self.subscription_commands.add),
            RemoveSubscription: self.subscription_commands.remove,
            AddDestination: self.send_destinations.add,
            RemoveDestination: self.send_destinations.remove,
            RemoveDestinationById: self.send_destinations.remove_by_id,
            AddReceiveDestination: self.receive_destinations.add,
            RemoveReceiveDestination: self.receive_destinations.remove,
            RejectImage: self.rejection.reject,
            AddCounter: self._refuse_id_in_use(self.user_counters.add),
            AddStaticCounter: self.user_counters.add_static,
            RemoveCounter: self.user_counters.remove,
            ClientKeepalive: lambda command: self.clients.on_keepalive(command.client_id),
            ClientClose: lambda command: self.clients.on_close(command.client_id),
            TerminateDriver: self._terminate,
        }

    def _refuse_id_in_use(self, add: Callable[..., None]) -> Callable[..., None]:
        """Return a handler that refuses a command whose registration id is already in use, and
        otherwise calls `add`.
        """

        def execute(command: HasCorrelationId) -> None:
            new = command.correlation_id
            if (
                self.publication_commands.held_by(new) is not None
                or new in self.links.subscriptions
                or self.user_counters.is_held(new)
            ):
                raise CommandError(f"registration_id={new} is already in use")
            add(command)

        return execute

    def _terminate(self, command: TerminateDriver) -> None:
        if self._resources.context.allows_termination(command.token):
            self._on_terminate()

    def remove_client(self, client_id: int) -> None:
        """Remove a client and free all its resources."""
        # Free its counters first, because they must no longer exist when its removal is announced.
        unavailable = self.user_counters.free_all_of(client_id)
        self.clients.remove(client_id)
        self.publication_commands.remove_all_of(client_id)
        for response in unavailable:
            self._resources.clients.transmit(response)
        self.subscription_commands.remove_all_of(client_id)

    def close(self) -> None:
        """Free all resources of the components. Call this only after the agents have stopped."""
        self.send_endpoints.close()
        self.receive_endpoints.close()
        self.network.close()
        self.ipc.close()
        self.images.close()
        free_retired_logs(self._resources)
