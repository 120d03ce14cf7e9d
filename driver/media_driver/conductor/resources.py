"""What the conductor owns, put together once, and who of it carries out which command.

    commands --> publications --> send endpoints    --> the sender
             --> subscriptions -> receive endpoints --> the receiver
                       |   links: who reads what

Decides nothing: it only introduces the rooms to each other.
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
from windtunnel.driver.media_driver.conductor.publications.network_publications import (
    NetworkPublication,
    NetworkPublications,
)
from windtunnel.driver.media_driver.conductor.publications.publication_commands import (
    PublicationCommands,
)
from windtunnel.driver.media_driver.conductor.publications.publication_errors import (
    PublicationErrors,
)
from windtunnel.driver.media_driver.conductor.publications.send_destinations import SendDestinations
from windtunnel.driver.media_driver.conductor.publications.session_ids import SessionIds
from windtunnel.driver.media_driver.conductor.user_counters import UserCounters
from windtunnel.driver.media_driver.name_resolution.reresolution import Reresolution, Watched


class HasCorrelationId(Protocol):
    """What is needed of a command that adds something."""

    correlation_id: int


class Resources:
    """All of them, by name."""

    def __init__(
        self, parts: DriverResources, manager: CountersManager, on_terminate: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._on_terminate = on_terminate
        context = parts.context
        session_ids = SessionIds(
            parts.random, context.reserved_session_id_low, context.reserved_session_id_high
        )
        limit_slots = SlotPool(parts.conductor.limits.size, "publications")
        self.reresolution = Reresolution(
            parts.names,
            context.reresolution_check_interval_ns,
            parts.record_error,
            parts.clock.now_ns(),
        )
        self.send_endpoints = SendChannelEndpoints(parts, self.reresolution)
        self.receive_endpoints = ReceiveChannelEndpoints(parts)
        self.links = SubscriptionLinks(parts)
        self.network = NetworkPublications(
            parts, self.send_endpoints, self.links, session_ids, limit_slots
        )
        self.ipc = IpcPublications(parts, self.links, session_ids, limit_slots)
        self.images = PublicationImages(parts, self.receive_endpoints, self.links)
        self.responses = ResponseChannels(
            parts, self.links, self.receive_endpoints, self.images, self.ipc
        )
        self.clients = ClientRegistry(parts)
        self.user_counters = UserCounters(manager, parts.clients, self.clients)
        channels = ChannelReader(parts)
        self.publication_commands = PublicationCommands(
            parts, self.clients, channels, self.network, self.ipc, session_ids, self.responses
        )
        self.subscription_commands = SubscriptionCommands(
            parts,
            self.clients,
            channels,
            self.receive_endpoints,
            self.links,
            self.images,
            self.network,
            self.ipc,
        )
        self.send_destinations = SendDestinations(
            parts, self.send_endpoints, self._network_publication
        )
        self.receive_destinations = ReceiveDestinations(
            parts, self.receive_endpoints, self.links, self.subscription_commands
        )
        self.rejection = ImageRejection(parts, self.images.reject, self.ipc.reject)
        self.publication_errors = PublicationErrors(parts, self.network.registration_id_of)

        self._watched_controls: dict[int, Watched] = {}
        self.receive_endpoints.on_control_opened = self._watch_control
        self.receive_endpoints.on_control_closed = self._unwatch_control

    def _watch_control(self, slot: int, channel: UdpChannel) -> None:
        """Look the name of a control address up again when nothing is heard from it."""
        text = channel.uri.get(uri_param.CONTROL)
        if text is None or channel.is_multicast:
            return
        watched = Watched(
            uri_param.CONTROL,
            text,
            channel.local_control,
            lambda address: self.receive_endpoints.change_control(slot, address),
            last_activity_ns=lambda: self.receive_endpoints.last_activity_ns(slot),
        )
        now_ns = self._parts.clock.now_ns()
        self._watched_controls[slot] = self.reresolution.watch(watched, now_ns)

    def _unwatch_control(self, slot: int) -> None:
        watched = self._watched_controls.pop(slot, None)
        if watched is not None:
            self.reresolution.unwatch(watched)

    def _network_publication(self, registration_id: int) -> NetworkPublication | None:
        # Java clients name the original even if its holder is gone, C clients their own holder.
        for item in self.network.publications:
            if registration_id == item.registration_id or registration_id in item.holders:
                return item
        return None

    def actions(self) -> dict[type, Callable[..., None]]:
        """Who carries out a command of each type."""
        return {
            AddPublication: self._unless_in_use(self.publication_commands.add),
            AddExclusivePublication: self._unless_in_use(self.publication_commands.add),
            RemovePublication: self.publication_commands.remove,
            GetNextAvailableSessionId: self.publication_commands.next_session_id,
            AddSubscription: self._unless_in_use(self.subscription_commands.add),
            RemoveSubscription: self.subscription_commands.remove,
            AddDestination: self.send_destinations.add,
            RemoveDestination: self.send_destinations.remove,
            RemoveDestinationById: self.send_destinations.remove_by_id,
            AddReceiveDestination: self.receive_destinations.add,
            RemoveReceiveDestination: self.receive_destinations.remove,
            RejectImage: self.rejection.reject,
            AddCounter: self._unless_in_use(self.user_counters.add),
            AddStaticCounter: self.user_counters.add_static,
            RemoveCounter: self.user_counters.remove,
            ClientKeepalive: lambda command: self.clients.on_keepalive(command.client_id),
            ClientClose: lambda command: self.clients.on_close(command.client_id),
            TerminateDriver: self._terminate,
        }

    def _unless_in_use(self, add: Callable[..., None]) -> Callable[..., None]:
        """Refuse an id that something is held by: nobody could ever give both of them back."""

        def carry_out(command: HasCorrelationId) -> None:
            new = command.correlation_id
            if (
                self.publication_commands.held_by(new) is not None
                or new in self.links.subscriptions
                or self.user_counters.is_held(new)
            ):
                raise CommandError(f"registration_id={new} is in use")
            add(command)

        return carry_out

    def _terminate(self, command: TerminateDriver) -> None:
        if self._parts.context.allows_termination(command.token):
            self._on_terminate()

    def forget_client(self, client_id: int) -> None:
        """Take back all that a client had."""
        # Its counters first: whoever hears that it is gone will find them gone.
        unavailable = self.user_counters.take_all_of(client_id)
        self.clients.forget(client_id)
        self.publication_commands.remove_all_of(client_id)
        for response in unavailable:
            self._parts.clients.tell(response)
        self.subscription_commands.remove_all_of(client_id)

    def close(self) -> None:
        """Free all of it; only after the agents have stopped."""
        self.send_endpoints.close()
        self.receive_endpoints.close()
        self.network.close()
        self.ipc.close()
        self.images.close()
